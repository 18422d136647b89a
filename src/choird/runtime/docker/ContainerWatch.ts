/**
 * The ends of containers (R7), as the engine's events report them. The engine never repeats an event of an outage, so each reconnection
 * inspects every container. An engine that is away says nothing about its containers: with live-restore they keep running.
 */
import type { Readable } from "node:stream"
import * as NodeStream from "@effect/platform-node/NodeStream"
import { Context, Deferred, Effect, Layer, Option, Schedule, Schema, type Scope, Stream } from "effect"
import { restarted } from "#src/shared/background.ts"
import type { Condition } from "#src/choird/runtime/ContainerRuntime.ts"
import { conditionOf, type ProcessIdentity, statOf } from "#src/choird/runtime/ProcessIdentity.ts"
import { DockerEngine, dockerError, type DockerError } from "./DockerEngine.ts"
import { HOME_LABEL } from "./imageNames.ts"
import type { Installation } from "#src/shared/docker/dockerInstallation.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Pause between two attempts to reconnect to the Docker engine. */
export const DOCKER_RECONNECT_MS = 500
/** Pause between two inspections of all containers while the engine is there, in case it omitted an event. */
const DOCKER_RECONCILE_MS = 5000

/** The end of a container, as the engine knows it. */
export interface ContainerEnd {
  /** `null` where nobody knows: the container was removed, or died while the engine was away. */
  readonly code: number | null
  readonly out_of_memory: boolean
}

export interface Watched {
  readonly ended: Deferred.Deferred<ContainerEnd>
  /** The first process of the container, by which its end is seen while the engine is away; none where choird cannot see it. */
  init: ProcessIdentity | undefined
}

/** Watches the containers of one installation. */
export class ContainerWatch extends Context.Service<
  ContainerWatch,
  {
    /** Watches a container until the scope closes. */
    watch(container_id: string): Effect.Effect<Watched, never, Scope.Scope>
    /** The condition of a watched container: it may have ended before it was watched, and its first process is known once it runs. */
    look(container_id: string): Effect.Effect<Condition, DockerError>
    /** The time since which the engine is away, `undefined` while its events arrive. */
    readonly away_since_ms: Effect.Effect<number | undefined>
    /** The number of the open connection to the engine's events, from 1; `undefined` while there is none. It ends when the engine does. */
    readonly connection: Effect.Effect<number | undefined>
  }
>()("choir/choird/ContainerWatch") {
  /** Listens to the engine until the scope closes. */
  static readonly layer = (installation: Installation) =>
    Layer.effect(
      ContainerWatch,
      Effect.suspend(() => make(installation))
    )
}

const State = Schema.Struct({
  State: Schema.Struct({
    Running: Schema.Boolean,
    Status: Schema.String,
    Pid: Schema.Int,
    ExitCode: Schema.Int,
    OOMKilled: Schema.Boolean
  })
})
const decodeState = Schema.decodeUnknownEffect(State)

const Event = Schema.fromJsonString(Schema.Struct({ Actor: Schema.Struct({ ID: Schema.String }) }))
const decodeEvent = Schema.decodeUnknownOption(Event)

const ENDED = new Set(["exited", "dead"])
const GONE: ContainerEnd = { code: null, out_of_memory: false }

const settle = ({ ended }: Watched, end: ContainerEnd) => Effect.asVoid(Deferred.succeed(ended, end))

/** The state of a container, if the engine has one of that id. */
const inspect = Effect.fnUntraced(function* (container_id: string) {
  const { use } = yield* DockerEngine
  const what = `the container ${container_id.slice(0, 12)} could not be inspected`
  const answer = yield* use(what, (docker, abortSignal) =>
    docker.getContainer(container_id).inspect({ abortSignal })
  ).pipe(
    Effect.asSome,
    Effect.catchIf(
      (error) => error.reason === "missing",
      () => Effect.succeedNone
    )
  )
  if (Option.isNone(answer)) return Option.none()
  return Option.some(yield* Effect.mapError(decodeState(answer.value), (error) => dockerError(what, error)))
})

/** The ids of an installation's containers that end, as the engine reports them. */
const endings = Effect.fnUntraced(function* (installation_id: string) {
  const { use } = yield* DockerEngine
  const what = "the Docker engine's events could not be read"
  const filters = JSON.stringify({
    type: ["container"],
    event: ["die", "destroy"],
    label: [`${HOME_LABEL}=${installation_id}`]
  })
  const events = yield* use(what, (docker, abortSignal) => docker.getEvents({ filters, abortSignal }))
  return NodeStream.fromReadable<Uint8Array, DockerError>({
    evaluate: () => events as Readable,
    onError: (cause) => dockerError(what, cause)
  }).pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.map((line) => Option.getOrUndefined(decodeEvent(line))?.Actor.ID),
    Stream.filter((container_id) => container_id !== undefined)
  )
})

const make = Effect.fnUntraced(function* ({ id }: Installation) {
  const provide = Effect.provideService(DockerEngine, yield* DockerEngine)
  const all = new Map<string, Watched>()
  let away_since_ms: number | undefined
  let connections = 0
  let isConnected = false

  const look = Effect.fnUntraced(function* (container_id: string): Effect.fn.Return<Condition, DockerError> {
    const watched = all.get(container_id)
    if (watched === undefined) return "unknown"
    const found = yield* provide(inspect(container_id))
    if (Option.isNone(found)) return yield* Effect.as(settle(watched, GONE), "gone" as const)
    const { State } = found.value
    if (State.Pid > 1) watched.init = yield* Effect.orElseSucceed(statOf(State.Pid), () => watched.init)
    if (State.Running || !ENDED.has(State.Status)) return State.Status === "paused" ? "paused" : "running"
    yield* settle(watched, { code: State.ExitCode, out_of_memory: State.OOMKilled })
    return "gone"
  })

  const lookAtAll = Effect.suspend(() => Effect.forEach([...all.keys()], look, { discard: true }))

  const listen = Effect.gen(function* () {
    const reading = Stream.runForEach(yield* provide(endings(id)), look)
    away_since_ms = undefined
    connections += 1
    isConnected = true
    const looking = Effect.repeat(lookAtAll, Schedule.spaced(DOCKER_RECONCILE_MS))
    yield* Effect.raceFirst(reading, looking).pipe(Effect.ensuring(Effect.sync(() => void (isConnected = false))))
  })

  /** Settles what can be known without the engine: a container whose first process is gone has ended. */
  const lookAtProcesses = Effect.gen(function* () {
    for (const watched of all.values()) {
      if (watched.init !== undefined && (yield* conditionOf(watched.init)) === "gone") yield* settle(watched, GONE)
    }
  })

  const away = Effect.gen(function* () {
    if (away_since_ms === undefined) {
      away_since_ms = yield* monotonicMs
      yield* Effect.logWarning("lost the connection to the Docker engine; its agents may keep running")
    }
    yield* lookAtProcesses
    yield* Effect.sleep(DOCKER_RECONNECT_MS)
  })

  yield* Effect.ignore(listen).pipe(
    Effect.andThen(away),
    Effect.forever,
    restarted("the watch of the Docker engine"),
    Effect.forkScoped
  )

  return ContainerWatch.of({
    watch: (container_id) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const watched: Watched = { ended: Deferred.makeUnsafe(), init: undefined }
          all.set(container_id, watched)
          return watched
        }),
        () => Effect.sync(() => all.delete(container_id))
      ),
    look,
    away_since_ms: Effect.sync(() => away_since_ms),
    connection: Effect.sync(() => (isConnected ? connections : undefined))
  })
})
