/** The Docker engine of this host. The only module that loads its client, and not before somebody asks the engine something. */
import { Agent } from "node:http"
import { Context, Effect, Layer, Schema } from "effect"
import type Docker from "dockerode"
import { type EngineFacts, engineFacts, EngineInfo } from "#src/shared/docker/dockerInfo.ts"
import { dockerSockets, existingSocket } from "#src/shared/docker/dockerSocket.ts"
import { dockerError, type DockerError, engineLate, noSocket } from "./DockerError.ts"

/** One request to the Docker engine, until it answers; those that take longer say so. */
const DOCKER_CALL_MS_MAX = 30_000

export interface DockerCall {
  /** How long the engine may take until it answers, {@link DOCKER_CALL_MS_MAX} unless said. A stream answers when it begins. */
  readonly ms_max?: number
}

/** The engine of `runtime.docker_socket`, else of DOCKER_HOST, else of the system, else of the user. */
export class DockerEngine extends Context.Service<
  DockerEngine,
  {
    /**
     * Asks the engine something. `what` begins the message of an error: "the container x could not be created". The signal ends the
     * request when the caller is interrupted or too much time has passed.
     */
    use<A>(
      what: string,
      act: (docker: Docker, signal: AbortSignal) => Promise<A>,
      call?: DockerCall
    ): Effect.Effect<A, DockerError>
    /** What the engine says of itself. */
    readonly info: Effect.Effect<EngineFacts, DockerError>
    /** The socket that is used, or those that were looked for when there is none. */
    readonly place: Effect.Effect<string>
  }
>()("choir/choird/DockerEngine") {
  static readonly layer = (options: { readonly docker_socket?: string }) =>
    Layer.sync(DockerEngine, () => make(options.docker_socket))
}

/** An engine that restarts leaves dead connections behind; each request gets a new one. The client's types do not know this option. */
const CONNECTIONS = { agent: new Agent({ keepAlive: false }) }

const decodeInfo = Schema.decodeUnknownEffect(EngineInfo)

const make = (configured: string | undefined): DockerEngine["Service"] => {
  const paths = dockerSockets(configured, process.env)
  const clients = new Map<string, Docker>()

  const client = Effect.fnUntraced(function* (what: string) {
    const socketPath = existingSocket(paths)
    if (socketPath === undefined) return yield* noSocket(what, paths)
    const known = clients.get(socketPath)
    if (known !== undefined) return known
    const { default: Engine } = yield* Effect.promise(() => import("dockerode"))
    const docker = new Engine({ socketPath, ...CONNECTIONS })
    clients.set(socketPath, docker)
    return docker
  })

  const use = <A>(
    what: string,
    act: (docker: Docker, signal: AbortSignal) => Promise<A>,
    { ms_max = DOCKER_CALL_MS_MAX }: DockerCall = {}
  ) =>
    Effect.flatMap(client(what), (docker) =>
      Effect.tryPromise({ try: (signal) => act(docker, signal), catch: (cause) => dockerError(what, cause) }).pipe(
        Effect.timeoutOrElse({ duration: ms_max, orElse: () => Effect.fail(engineLate(what, ms_max)) })
      )
    ).pipe(Effect.withSpan("DockerEngine.use", { attributes: { what } }))

  const said = "the Docker engine could not be asked what it can do"
  return DockerEngine.of({
    use,
    info: use(said, (docker) => docker.info()).pipe(
      Effect.flatMap((info) => Effect.mapError(decodeInfo(info), (error) => dockerError(said, error))),
      Effect.map(engineFacts)
    ),
    place: Effect.sync(() => existingSocket(paths) ?? paths.join(" or "))
  })
}
