/**
 * Containers of trials: an agent's program in the agent's own image, network and limits, in an empty workspace, with one task. What comes from
 * it is hostile as what comes from an agent is.
 */
import { randomBytes } from "node:crypto"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import type { Socket } from "node:net"
import { dirname, join } from "node:path"
import { Clock, Context, Effect, Layer, Option, Redacted, Ref, type Scope, Semaphore, Stream } from "effect"
import type { ContainedTask, FromTrial } from "#schema/ContainedTrial.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { HostTools } from "#src/choird/hosttools/HostTools.ts"
import type { Image } from "#src/choird/images/Images.ts"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"
import { type Container, type ContainerError, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { AgentNumbers } from "#src/choird/sessions/AgentNumbers.ts"
import { sessionId } from "#src/choird/sessions/SessionStore.ts"
import type { SocketRefused } from "#src/shared/wire/sockets.ts"
import { listenOnce, messagesOf, type TrialUnfinished, unfinished, writeTo } from "./trialSocket.ts"

/** The longest trial, with the start of its container. */
const CONTAINED_MS_MAX = 900_000
/** Trials at once; others wait in order. */
const TRIALS_AT_ONCE_MAX = 2
/** Host calls of one trial at once. */
const HOST_CALLS_MAX = 8
/** The wait for the last lines of a container that gave no outcome. */
const LAST_WORDS_MS_MAX = 1000

/** A file of the trial's workspace. */
export interface TrialFile {
  /** Relative to the workspace. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly executable: boolean
}

export interface TrialPlan {
  readonly agent_id: AgentId
  readonly image: Image
  readonly files: ReadonlyArray<TrialFile>
  task(session_id: SessionId): ContainedTask
}

export type Outcome = Exclude<FromTrial, { readonly type: "host_call" | "failed" }>

export type TrialError = TrialUnfinished | ContainerError | ProgramMissing | SocketRefused

/** Runs trials in containers. */
export class TrialContainers extends Context.Service<
  TrialContainers,
  {
    /** Runs a task to its outcome; nothing of its container, its socket and its workspace is left then. An interrupt ends it the same way. */
    run(plan: TrialPlan): Effect.Effect<Outcome, TrialError>
  }
>()("choir/choird/TrialContainers") {
  /** @param programs the programs of this installation that every container gets. */
  static readonly layer = (programs: Effect.Effect<AgentPrograms, ProgramMissing>) =>
    Layer.effect(TrialContainers, make(programs))
}

/** The cause of a container's death, by the last line that it printed. */
const lastWords = ({ exit, output }: Container) =>
  Effect.gen(function* () {
    const last = yield* Ref.make("")
    const reading = Stream.runForEach(output, (line) => Ref.set(last, line))
    const { code, reason, signal } = yield* exit
    yield* Effect.timeoutOption(reading, LAST_WORDS_MS_MAX)
    const line = yield* Ref.get(last)
    const ended =
      reason === "out_of_memory"
        ? "it ran out of memory"
        : `its container ended with ${signal ?? code ?? "an unknown code"}`
    return unfinished(line === "" ? ended : `${ended}: ${/"message":"((?:[^"\\]|\\.)*)"/u.exec(line)?.[1] ?? line}`)
  })

/** Starts containers in workspaces of their own; all of it goes with the scope. */
const makeStart = Effect.gen(function* () {
  const { current, home } = yield* ConfigStore
  const numbers = yield* AgentNumbers
  const runtime = yield* ContainerRuntime
  const root = join(home, "trials")
  let swept = false

  /** Removes what a choird that was killed left, before the first trial of this one. */
  const sweep = Effect.suspend(() => {
    if (swept) return Effect.void
    swept = true
    mkdirSync(root, { recursive: true, mode: 0o700 })
    return Effect.ignore(runtime.emptyWorkspace(root, []), { log: "Warn" })
  })

  const openWorkspace = Effect.fnUntraced(function* (session_id: SessionId, files: TrialPlan["files"]) {
    const path = join(root, session_id)
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        mkdirSync(path, { mode: 0o700 })
        for (const { bytes, executable, path: name } of files) {
          mkdirSync(dirname(join(path, name)), { recursive: true, mode: 0o700 })
          writeFileSync(join(path, name), bytes, { flag: "wx", mode: executable ? 0o700 : 0o600 })
        }
      }),
      () =>
        runtime
          .emptyWorkspace(path, [])
          .pipe(
            Effect.andThen(Effect.sync(() => rmSync(path, { recursive: true, force: true }))),
            Effect.ignore({ log: "Warn" })
          )
    )
    return path
  })

  return Effect.fnUntraced(function* (plan: TrialPlan, programs: AgentPrograms, session_id: SessionId) {
    const { agent_id, files, image } = plan
    yield* sweep
    const agent_number = yield* Effect.catchTag(
      databaseDefect(numbers.of(agent_id)),
      "AgentNumbersTaken",
      ({ message }) => unfinished(message)
    )
    const { cpus, memory_mb, pids } = (yield* current).config.runtime
    const workspace = yield* openWorkspace(session_id, files)
    const socket = join(home, "socks", "agents", session_id, "choird.sock")
    const connected = yield* listenOnce(socket)
    const container = yield* runtime.start({
      agent_id,
      agent_number,
      session_id,
      epoch: 1,
      image_version: image.image_version,
      image: image.path,
      ...programs,
      socket_dir: dirname(socket),
      workspace,
      // Nothing takes it: a trial has no session to say hello for.
      bootstrap_token: Redacted.make(randomBytes(16).toString("hex")),
      limits: { cpus, memory_mb, pids },
      trial: true
    })
    return { connected, container }
  })
})

const make = Effect.fnUntraced(function* (agentPrograms: Effect.Effect<AgentPrograms, ProgramMissing>) {
  const hostTools = yield* HostTools
  const start = yield* makeStart
  const turns = yield* Semaphore.make(TRIALS_AT_ONCE_MAX)

  /** Answers a call of the host. Its outcome is kept nowhere. */
  const answer = Effect.fnUntraced(function* (
    socket: Socket,
    caller: { readonly agent_id: AgentId; readonly session_id: SessionId },
    { call_id, input, tool_name }: Extract<FromTrial, { readonly type: "host_call" }>,
    scope: Scope.Scope
  ) {
    const reply = yield* Effect.match(hostTools.runOnce(caller, { tool_name, call_id, input }, scope), {
      onSuccess: ({ output, status }) => ({ status, output }),
      onFailure: ({ kind, reason }) => ({ refused: kind, reason })
    })
    yield* writeTo(socket, { type: "host_reply", call_id, reply })
  })

  const run = Effect.fnUntraced(function* (plan: TrialPlan) {
    const scope = yield* Effect.scope
    const programs = yield* agentPrograms
    const session_id = sessionId(yield* Clock.currentTimeMillis, randomBytes(4))
    const caller = { agent_id: plan.agent_id, session_id }
    const { connected, container } = yield* start(plan, programs, session_id)
    const converse = Effect.gen(function* () {
      const socket = yield* connected
      yield* writeTo(socket, { type: "task", task: plan.task(session_id) })
      const handle = (message: FromTrial) =>
        message.type === "host_call"
          ? Effect.as(answer(socket, caller, message, scope), undefined)
          : Effect.succeed(message)
      const outcome = yield* messagesOf(socket).pipe(
        Stream.mapEffect(handle, { concurrency: HOST_CALLS_MAX, unordered: true }),
        Stream.filter((message) => message !== undefined),
        Stream.runHead
      )
      // Its container has ended, and says why.
      if (Option.isNone(outcome)) return yield* Effect.never
      const { value } = outcome
      return value.type === "failed" ? yield* unfinished(value.reason) : value
    })
    const died = Effect.flatMap(lastWords(container), Effect.fail)
    return yield* Effect.raceFirst(converse, died)
  }, Effect.scoped)

  return TrialContainers.of({
    run: Effect.fn("TrialContainers.run")((plan) =>
      run(plan).pipe(
        Effect.timeoutOrElse({
          duration: CONTAINED_MS_MAX,
          orElse: () => Effect.fail(unfinished(`it did not end within ${CONTAINED_MS_MAX / 60_000} minutes`))
        }),
        turns.withPermit
      )
    )
  })
})
