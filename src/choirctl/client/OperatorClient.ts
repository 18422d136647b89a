/** The typed client of choird's operator API, on its Unix socket. Loaded by the commands that need it. */
import { ByteSize, Effect, Schema, type Scope } from "effect"
import { HttpClientError, HttpIncomingMessage } from "effect/http"
import { HttpApi, HttpApiClient, type HttpApiGroup } from "effect/http-api"
import { type ApiError, BadRequest, Conflict, Internal, NotFound, TooLarge, TooMany } from "#schema/ApiError.ts"
import type { OperatorApi } from "#schema/OperatorApi.ts"
import { SchemaErrors } from "#schema/SchemaErrors.ts"
import { CommandFailed, configError, EXIT, failed, refusedByChoird } from "#src/choirctl/terminal/failure.ts"
import { operatorSocket, startCommand } from "#src/choirctl/terminal/root.ts"
import { initHint, onHome } from "#src/shared/files/homeFolder.ts"
import { socketHttp } from "./socketHttp.ts"

// An import of node:fs evaluates exports that load streams and readline, which take as long as a tenth of a call.
const fs = process.getBuiltinModule("node:fs")

/** How long choird may take to tell its status, which it has in memory: longer on no machine, however busy. */
const STATUS_MS_MAX = 20_000

/** Bytes of an answer that choirctl reads whole. */
const OPERATOR_ANSWER_BYTES_MAX = 64 * 1024 * 1024

export type OperatorClient = HttpApiClient.ForApi<typeof OperatorApi>

/** The groups of the operator API. */
export type Group = keyof OperatorClient

/** Each group with nothing but its own schemas, since defining those of all groups takes longer than most requests. */
const GROUPS: { readonly [G in Group]: () => Promise<HttpApiGroup.Constraint & { readonly identifier: G }> } = {
  agents: async () => (await import("#schema/AgentsApi.ts")).AgentsApi,
  approvals: async () => (await import("#schema/ApprovalsApi.ts")).Approvals,
  audit: async () => (await import("#schema/SystemApi.ts")).AuditApi,
  chat: async () => (await import("#schema/ChatApi.ts")).ChatApi,
  configuration: async () => (await import("#schema/ConfigApi.ts")).Configuration,
  database: async () => (await import("#schema/SystemApi.ts")).DatabaseApi,
  dms: async () => (await import("#schema/DmsApi.ts")).DmsApi,
  plans: async () => (await import("#schema/PlansApi.ts")).PlansApi,
  memory: async () => (await import("#schema/MemoryApi.ts")).MemoryApi,
  resume: async () => (await import("#schema/SessionsApi.ts")).ResumeApi,
  retention: async () => (await import("#schema/SystemApi.ts")).RetentionApi,
  runs: async () => (await import("#schema/RunsApi.ts")).RunsApi,
  session: async () => (await import("#schema/SessionsApi.ts")).SessionDetailApi,
  sessions: async () => (await import("#schema/SessionsApi.ts")).SessionsApi,
  skills: async () => (await import("#schema/AgentsApi.ts")).SkillApi,
  system: async () => (await import("#schema/SystemApi.ts")).SystemApi,
  updates: async () => (await import("#schema/AgentsApi.ts")).UpdateApi,
  workspaces: async () => (await import("#schema/SystemApi.ts")).WorkspaceApi
}

/** A client of one group on the choird of this home, until the scope closes. Nothing is sent yet. */
export const connect = <const G extends Group>(
  home: string,
  group: G
): Effect.Effect<OperatorClient[G], never, Scope.Scope> =>
  Effect.gen(function* () {
    const httpClient = yield* socketHttp(operatorSocket(home))
    const definition = yield* Effect.promise(GROUPS[group])
    // Of all groups it has the one that is asked for.
    const api = HttpApi.make("choir-operator").add(definition).middleware(SchemaErrors) as unknown as typeof OperatorApi
    // The group's own type and the one that the whole client has for it are the same, which a type parameter hides.
    return yield* HttpApiClient.group(api, {
      group,
      httpClient,
      baseUrl: "http://choird"
    }) as unknown as Effect.Effect<OperatorClient[G]>
  })

/** Bounds what an answer may take of memory; a stream is bounded by its elements. */
const withinLimits = Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(OPERATOR_ANSWER_BYTES_MAX))

const isRefusal = (error: unknown): error is ApiError =>
  [BadRequest, NotFound, Conflict, TooLarge, TooMany, Internal].some((kind) => error instanceof kind)

const codeOf = (error: HttpClientError.HttpClientError): string => {
  const cause = "cause" in error.reason ? error.reason.cause : undefined
  return cause instanceof Error && "code" in cause ? String(cause.code) : ""
}

const unreachable = (home: string, problem: string, hint: string) =>
  new CommandFailed({
    type: "CHOIRD_UNREACHABLE",
    problem,
    hint: hint || startCommand(home),
    exit_code: EXIT.unreachable
  })

const transportFailure = (home: string, error: HttpClientError.HttpClientError) => {
  const socket = operatorSocket(home)
  switch (codeOf(error)) {
    case "ENOENT":
    case "ECONNREFUSED":
      if (!fs.existsSync(home)) return configError(`${home} does not exist`, initHint(home))
      return unreachable(home, `choird is not running: nothing answers on ${socket}`, startCommand(home))
    case "EACCES":
      return unreachable(home, `${socket} belongs to another user`, "run choirctl as the user that runs choird")
    case "EINVAL":
    case "ENAMETOOLONG":
      return unreachable(home, `the path ${socket} is too long for a socket`, "choose a home with a shorter path")
    default:
      return new CommandFailed({
        type: "CONNECTION_LOST",
        problem: "choird closed the connection before it answered",
        hint: "try again; if it keeps happening: choirctl logs choird",
        exit_code: EXIT.again
      })
  }
}

/** The failure of a request or of its stream as a failed command. */
export const requestFailure = (home: string) => (error: unknown) => {
  if (error instanceof CommandFailed) return error
  if (isRefusal(error)) return refusedByChoird(error.error)
  if (HttpClientError.isHttpClientError(error) && error.reason._tag !== "DecodeError" && error.response === undefined)
    return transportFailure(home, error)
  if (Schema.isSchemaError(error))
    return failed("PROTOCOL", "choird and choirctl have different protocol versions", "restart choird, then try again")
  return new CommandFailed({
    type: "CONNECTION_LOST",
    problem: "choird closed the connection or sent an invalid response",
    hint: "choirctl logs choird",
    exit_code: EXIT.again
  })
}

/** Sends one request to the choird of this home. */
export const askChoird = <const G extends Group, A, E>(
  home: string,
  group: G,
  question: (choird: OperatorClient[G]) => Effect.Effect<A, E>
) =>
  Effect.flatMap(connect(home, group), question).pipe(
    Effect.scoped,
    withinLimits,
    Effect.mapError(requestFailure(home))
  )

const silent = (home: string) =>
  new CommandFailed({
    type: "CHOIRD_SILENT",
    problem: `choird accepts connections and does not answer for ${STATUS_MS_MAX / 1000} s: it hangs, or the machine is very busy`,
    hint: onHome(home, "choirctl logs choird; to stop it: choirctl daemon stop"),
    exit_code: EXIT.again
  })

/** The status of the choird of this home. One that hangs is a failure, and holds nobody up. */
export const choirdStatus = (home: string) =>
  askChoird(home, "system", (choird) => choird.status()).pipe(
    Effect.timeoutOrElse({ duration: STATUS_MS_MAX, orElse: () => Effect.fail(silent(home)) })
  )
