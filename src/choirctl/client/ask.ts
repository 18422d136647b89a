/** One question to choird. */
import { Effect, Stream } from "effect"
import type { Group, OperatorClient } from "./OperatorClient.ts"
import { root } from "#src/choirctl/terminal/root.ts"

/** The client and the schemas behind it are loaded when they are needed, so that `--help` does not wait for them. */
const load = Effect.promise(() => import("./OperatorClient.ts"))

/** Asks choird of the home that the flags name. */
export const ask = Effect.fnUntraced(function* <const G extends Group, A, E>(
  group: G,
  question: (choird: OperatorClient[G]) => Effect.Effect<A, E>
) {
  const { home } = yield* root
  const { askChoird } = yield* load
  return yield* askChoird(home, group, question)
})

/** Asks for a stream. */
export const askStream = <const G extends Group, A, E, E2>(
  group: G,
  question: (choird: OperatorClient[G]) => Effect.Effect<Stream.Stream<A, E>, E2>
) =>
  Effect.gen(function* () {
    const { home } = yield* root
    const { connect, requestFailure } = yield* load
    return Stream.unwrap(Effect.flatMap(connect(home, group), question)).pipe(Stream.mapError(requestFailure(home)))
  }).pipe(Stream.unwrap)
