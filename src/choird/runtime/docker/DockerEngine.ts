/** The Docker engine of this host and its errors. The only module that loads its client, with the first request to the engine. */
import { Agent } from "node:http"
import { Context, Effect, Layer, Schema } from "effect"
import type Docker from "dockerode"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import { type EngineFacts, engineFacts, EngineInfo } from "#src/shared/docker/dockerInfo.ts"
import { dockerSockets, existingSocket } from "#src/shared/docker/dockerSocket.ts"

/** Time for the answer to a request to the Docker engine; longer ones name their own. */
const DOCKER_CALL_MS_MAX = 30_000

export interface DockerCall {
  /** Time for the engine's answer, {@link DOCKER_CALL_MS_MAX} by default. A stream answers when it begins. */
  readonly ms_max?: number
}

/** The engine of `runtime.docker_socket`, else of DOCKER_HOST, else of the system, else of the user. */
export class DockerEngine extends Context.Service<
  DockerEngine,
  {
    /**
     * Sends a request to the engine. `what` begins the message of an error: "the container x could not be created". The signal ends the
     * request when the caller is interrupted or the time is over.
     */
    use<A>(
      what: string,
      act: (docker: Docker, signal: AbortSignal) => Promise<A>,
      call?: DockerCall
    ): Effect.Effect<A, DockerError>
    /** The facts that the engine reports about itself. */
    readonly info: Effect.Effect<EngineFacts, DockerError>
    /** The socket in use, or the candidates when none exists. */
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
    const { default: Engine } = yield* Effect.promise(() => import("./dockerClient.ts"))
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

  const said = "the Docker engine could not be asked for its features"
  return DockerEngine.of({
    use,
    info: use(said, (docker) => docker.info()).pipe(
      Effect.flatMap((info) => Effect.mapError(decodeInfo(info), (error) => dockerError(said, error))),
      Effect.map(engineFacts)
    ),
    place: Effect.sync(() => existingSocket(paths) ?? paths.join(" or "))
  })
}

/** Characters of the engine's message that an error repeats. */
const DETAIL_CHARS_MAX = 1000

const Reason = Schema.Literals(["unreachable", "denied", "late", "unchanged", "missing", "conflict", "failed"])
type Reason = typeof Reason.Type

/** A request that the Docker engine refused or did not answer. */
export class DockerError extends Schema.TaggedError<DockerError>()("DockerError", {
  /** The beginning of a sentence about the request: `the container choir-a could not be created`. */
  what: Schema.String,
  /**
   * `unreachable`, `denied`, `late`: the engine did not answer. `unchanged` (304), `missing` (404), `conflict` (409): it is already so,
   * does not exist, or collides. `failed`: anything else.
   */
  reason: Reason,
  status: Schema.optionalKey(Schema.Int),
  detail: Schema.String,
  fix: Schema.String
}) {
  override get message() {
    return `${this.what}: ${this.detail}. ${this.fix}`
  }
}

/** Whether it is unknown what the engine did. */
export const engineIsAway = ({ reason }: DockerError): boolean => AWAY.has(reason)

const AWAY: ReadonlySet<Reason> = new Set(["unreachable", "denied", "late"])

const BY_STATUS: Readonly<Record<number, Reason>> = { 304: "unchanged", 404: "missing", 409: "conflict" }

/** Codes of a connection that failed or broke. */
const BROKEN = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE", "ENOTSOCK", "UND_ERR_SOCKET"])

const FIXES: Readonly<Record<Reason, string>> = {
  unreachable: "Start the engine: systemctl start docker",
  denied: "Let choird's user reach the socket: usermod -aG docker USER, then start choird again",
  late: "Check the engine's log: journalctl -u docker",
  unchanged: "Nothing needs to be done",
  missing: "Check docker ps --all and docker images",
  conflict: "Try again in a moment",
  failed: "Check the engine's log: journalctl -u docker"
}

/** One line that is safe to print: the engine repeats names and output of others. */
const plain = (text: string) =>
  text
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, DETAIL_CHARS_MAX)

const failed = (what: string, reason: Reason, detail: string, status?: number) =>
  new DockerError({
    what,
    reason,
    detail: plain(detail),
    fix: FIXES[reason],
    ...(status === undefined ? {} : { status })
  })

export const engineLate = (what: string, ms: number) =>
  failed(what, "late", `the engine did not answer within ${ms} ms`)

const noSocket = (what: string, paths: ReadonlyArray<string>) =>
  failed(what, "unreachable", `there is no Docker engine at ${paths.join(" or ")}`)

/** The error that a rejection of the client means. */
export const dockerError = (what: string, cause: unknown): DockerError => {
  const { code, json, message, statusCode } = Object(cause) as Readonly<Record<string, unknown>>
  if (typeof statusCode === "number") {
    const said = Object(json) as Readonly<Record<string, unknown>>
    const detail = String(said["message"] ?? message ?? cause)
    return failed(what, BY_STATUS[statusCode] ?? "failed", detail, statusCode)
  }
  const detail = String(message ?? cause)
  if (code === "EACCES" || code === "EPERM") return failed(what, "denied", detail)
  const broken = BROKEN.has(String(code)) || /socket hang up|aborted/u.test(detail)
  return failed(what, broken ? "unreachable" : "failed", detail)
}

/** The same error as the runtime's callers know it. */
export const asContainerError = (error: DockerError | ContainerError): ContainerError =>
  error._tag === "ContainerError"
    ? error
    : new ContainerError({
        reason: engineIsAway(error) ? "unavailable" : "failed",
        problem: `${error.what}: ${error.detail}`,
        fix: error.fix
      })
