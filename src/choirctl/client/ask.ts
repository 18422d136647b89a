/** Requests to the choird of the home that the flags name. */
import { Effect, Option, Stream } from "effect"
import type { ErrorDetail } from "#schema/ApiError.ts"
import { logDeath } from "#src/shared/background.ts"
import { type CommandFailed, refusedByChoird } from "#src/choirctl/terminal/failure.ts"
import { operatorSocket, root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import type { Group, OperatorClient } from "./OperatorClient.ts"

/** The client and the schemas behind it are loaded when they are needed, so that `--help` does not wait for them. */
const load = Effect.promise(() => import("./OperatorClient.ts"))

/** How long choird may be silent before choirctl says that it still waits. */
const SILENCE_MS = 30_000

const stillWaits = Effect.flatMap(Screen, ({ note }) =>
  Effect.andThen(
    Effect.sleep(SILENCE_MS),
    note(
      `choird has not answered for ${SILENCE_MS / 1000} s; choirctl is still waiting. Run choirctl status to see whether choird works`
    )
  )
)

/** One request and its answer. */
export const ask = Effect.fnUntraced(function* <const G extends Group, A, E>(
  group: G,
  question: (choird: OperatorClient[G]) => Effect.Effect<A, E>
) {
  const { home } = yield* root
  const { askChoird } = yield* load
  yield* Effect.forkScoped(logDeath("the note about a slow answer")(stillWaits))
  return yield* askChoird(home, group, question)
}, Effect.scoped)

/** The status of choird. */
export const askStatus = Effect.gen(function* () {
  const { home } = yield* root
  const { choirdStatus } = yield* load
  return yield* choirdStatus(home)
})

/** A request that is answered by a stream. */
export const askStream = <const G extends Group, A, E, E2>(
  group: G,
  question: (choird: OperatorClient[G]) => Effect.Effect<Stream.Stream<A, E>, E2>
) =>
  Effect.gen(function* () {
    const { home } = yield* root
    const { connect, requestFailure } = yield* load
    return Stream.unwrap(Effect.flatMap(connect(home, group), question)).pipe(Stream.mapError(requestFailure(home)))
  }).pipe(Stream.unwrap)

/** The progress that choird streams while it works on a request: its steps, then the result or the failure. */
type Progress<A> =
  | { readonly type: "step"; readonly text: string }
  | { readonly type: "done"; readonly result: A }
  | { readonly type: "failed"; readonly error: ErrorDetail }

/**
 * Follows progress to the result. Fails with choird's own failure, or with `unfinished` if the stream ends before the result.
 *
 * @param onStep shows a step; by default on standard error.
 */
export const followProgress = Effect.fnUntraced(function* <A, E, R>(
  steps: Stream.Stream<Progress<A>, E, R>,
  unfinished: CommandFailed,
  onStep?: (text: string) => Effect.Effect<void>
) {
  const screen = yield* Screen
  const show = onStep ?? ((text: string) => screen.note(safeLine(text)))
  const last = yield* steps.pipe(
    Stream.tap((step) => (step.type === "step" ? show(step.text) : Effect.void)),
    Stream.runLast
  )
  const end = Option.getOrUndefined(last)
  if (end?.type === "failed") return yield* refusedByChoird(end.error)
  if (end?.type !== "done") return yield* unfinished
  return end.result
})

/** Whether a program accepts connections on choird's socket. */
export const choirdAnswers = (home: string) =>
  Effect.flatMap(
    Effect.promise(() => import("#src/shared/files/homeLocks.ts")),
    ({ socketAnswers }) => socketAnswers(operatorSocket(home))
  )
