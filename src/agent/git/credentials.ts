/**
 * Git's credential helper and the agent's side of it (D14). The helper is the agent's program as `git-cred-helper SOCKET get`: it asks the
 * agent over a private socket and prints what git reads. The token stays in the agent's memory and goes only to a child of git in a running
 * call, never into a file or a variable.
 */
import { existsSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { Console, Effect, Option, Redacted, Result, Schema, Stdio, Stream } from "effect"
import { HttpClient, HttpClientRequest, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import { listen } from "#src/shared/wire/http.ts"
import { coversHttps } from "#src/shared/git/gitRemotes.ts"
import { GIT_CRED_HELPER } from "#src/shared/git/gitCredential.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { parentOf } from "#src/agent/process/ProcessTable.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { RPC_TIMEOUT_MS } from "#src/agent/control/verbAnswer.ts"

/** A request of git to its credential helper (D14). */
const CREDENTIAL_REQUEST_BYTES_MAX = 8 * 1024

/** A line of git's protocol cannot hold these, and a server that redirects must not smuggle them in. */
const FORBIDDEN = /[\r\0]/u
const FIELD = /^(?<key>[a-z_[\]]+)=(?<value>.*)$/u
const USER = "git"

interface CredentialRequest {
  readonly protocol: string
  readonly host: string
  readonly path: string
  readonly username: string | undefined
}

/** Reads `key=value` lines up to the first empty one. */
export const readRequest = (text: string): Result.Result<CredentialRequest, string> => {
  if (Buffer.byteLength(text) > CREDENTIAL_REQUEST_BYTES_MAX) return Result.fail("the request is too long")
  if (FORBIDDEN.test(text)) return Result.fail("the request contains CR or NUL")
  const fields = new Map<string, string>()
  for (const line of text.split("\n\n", 1)[0]?.split("\n") ?? []) {
    if (line === "") continue
    const { key, value } = FIELD.exec(line)?.groups ?? {}
    if (key === undefined || value === undefined) return Result.fail("the request is not in git's form")
    // Keys such as capability[] come more than once and mean nothing here; of all others the second is a trick.
    if (!key.endsWith("[]") && fields.has(key)) return Result.fail(`the request names ${key} twice`)
    fields.set(key, value)
  }
  const [protocol, host] = [fields.get("protocol"), fields.get("host")]
  if (protocol === undefined || host === undefined) return Result.fail("the request names no host")
  return Result.succeed({ protocol, host, path: fields.get("path") ?? "", username: fields.get("username") })
}

const mayGo = (remotes: GitIdentity["remotes"], { protocol, host, path }: CredentialRequest) =>
  protocol === "https" && coversHttps(remotes, { host, path: `/${path}` })

/** The answer to git, or a sentence for the reader of git's stderr. The secret is a token or `user:token`. */
export const answerRequest = (text: string, identity: GitIdentity, secret: string): Result.Result<string, string> =>
  Result.flatMap(readRequest(text), (request) => {
    if (!mayGo(identity.remotes, request)) {
      const allowed = identity.remotes?.filter((remote) => remote.startsWith("https:")).join(", ")
      return Result.fail(
        `${request.protocol}://${request.host}/${request.path} has no credentials; the operator allows ${allowed === undefined || allowed === "" ? "no https remote" : allowed}`
      )
    }
    const [, user = request.username ?? USER, password = secret] = /^([^:]+):(.+)$/su.exec(secret) ?? []
    return /[\r\n\0]/u.test(secret)
      ? Result.fail("the identity's secret is not a token of one line")
      : Result.succeed(`username=${user}\npassword=${password}\n`)
  })

/** Helpers that ask the agent at once (D14). */
const CREDENTIAL_CONNECTIONS_MAX = 8

/** A call of the helper: its own pid, and git's request as it came. */
const CredentialCall = Schema.Struct({
  pid: Schema.Int.check(Schema.isGreaterThan(1)),
  request: Schema.String.check(Schema.isMaxLength(CREDENTIAL_REQUEST_BYTES_MAX))
})

const GIT = /^\/usr\/(?:local\/)?(?:bin|lib\/git-core|libexec\/git-core)\/git(?:-remote-https?)?$/u

/** Whether the parent of a process is git as the image brings it. */
const isOfGit = (pid: number): boolean => {
  const parent = parentOf(pid)
  const program = Result.try(() => (parent === undefined ? "" : readlinkSync(`/proc/${parent}/exe`)))
  return GIT.test(Result.getOrElse(program, () => ""))
}

/** Decides what a call of the helper gets: the answer to git, or why there is none. */
const makeDecide = Effect.gen(function* () {
  const processes = yield* ProcessRunner
  const secrets = yield* SecretStore
  const settings = yield* AgentSettings
  return Effect.fnUntraced(function* ({ pid, request }: typeof CredentialCall.Type) {
    if (processes.callOf(pid) === undefined || !isOfGit(pid))
      return Result.fail("only git commands of a running call get credentials")
    const identity = settings.current().config.git_identity
    const secret = identity === undefined ? undefined : yield* secrets.get(identity.secret)
    if (identity === undefined || secret === undefined) return Result.fail("the agent has no git credentials")
    return answerRequest(request, identity, Redacted.value(secret).trim())
  })
})

/** Serves at `path` until the scope closes. A refusal is a sentence, which the helper prints. */
export const serveCredentials = Effect.fnUntraced(function* (path: string) {
  const decide = yield* makeDecide
  yield* listen(
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const call = Schema.decodeUnknownOption(CredentialCall)(yield* request.json)
      if (Option.isNone(call))
        return HttpServerResponse.text("that is not a valid request of the credential helper", { status: 400 })
      return Result.match(yield* decide(call.value), {
        onSuccess: (text) => HttpServerResponse.text(text),
        onFailure: (reason) => HttpServerResponse.text(reason, { status: 403 })
      })
    }),
    { path, connectionsMax: CREDENTIAL_CONNECTIONS_MAX }
  )
})

/** The command that starts the helper: the program of an image, where the agent is in one, else this program by its first argument. */
export const gitHelper = (choir: string): ReadonlyArray<string> => {
  const baked = join(choir, "bin", GIT_CRED_HELPER)
  return existsSync(baked) ? [baked] : [...process.argv.slice(0, 2), GIT_CRED_HELPER]
}

const standardInput = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  let bytes = 0
  return yield* stdin.pipe(
    Stream.takeWhile((chunk) => (bytes += chunk.length) <= CREDENTIAL_REQUEST_BYTES_MAX),
    Stream.decodeText(),
    Stream.mkString
  )
})

/** The helper. Git's `store` and `erase` do nothing, since nothing is kept. @param args what follows {@link GIT_CRED_HELPER} on the command line. */
export const credentialHelper = Effect.fnUntraced(function* ([socket, action]: ReadonlyArray<string>) {
  if (socket === undefined || action !== "get") return
  const request = yield* standardInput
  const body = HttpClientRequest.post("http://agent/").pipe(
    HttpClientRequest.bodyJsonUnsafe({ pid: process.pid, request })
  )
  const answer = yield* Effect.provide(
    Effect.flatMap(HttpClient.execute(body), (response) =>
      Effect.map(response.text, (text) => ({ text, status: response.status }))
    ),
    layerSocketClient(socket)
  ).pipe(Effect.timeout(RPC_TIMEOUT_MS))
  if (answer.status === 200) return yield* Console.log(answer.text.trimEnd())
  yield* Console.error(`choir: ${answer.text}`)
})
