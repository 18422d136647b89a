/**
 * Answers git's credential helper over a socket of the agent's own (D14): the token is in this process's memory only, and goes
 * to a child of git in a running call. Whoever may run git there may use it all the same; what it does not get is a file or a variable.
 */
import { readlinkSync } from "node:fs"
import { Effect, Option, Redacted, Result, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import type { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { parentOf } from "#src/agent/process/ProcessTable.ts"
import type { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { listen } from "#src/shared/wire/http.ts"
import { answerRequest } from "./credentialRequest.ts"
import { CREDENTIAL_REQUEST_BYTES_MAX } from "./credentialHelper.ts"

/** Helpers that ask the agent at once (D14). */
const CREDENTIAL_CONNECTIONS_MAX = 8

/** What the helper sends: its own pid, and git's request as it came. */
export const CredentialCall = Schema.Struct({
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

interface Parts {
  readonly settings: AgentSettings["Service"]
  readonly secrets: SecretStore["Service"]
  readonly processes: ProcessRunner["Service"]
}

const decide = Effect.fnUntraced(function* ({ processes, secrets, settings }: Parts, call: typeof CredentialCall.Type) {
  if (processes.callOf(call.pid) === undefined || !isOfGit(call.pid))
    return Result.fail("only git of a running call is answered")
  const identity = settings.current().config.git_identity
  const secret = identity === undefined ? undefined : yield* secrets.get(identity.secret)
  if (identity === undefined || secret === undefined) return Result.fail("the agent has no git credentials")
  return answerRequest(call.request, identity, Redacted.value(secret).trim())
})

/** Serves at `path` until the scope closes. A refusal is a sentence, which the helper prints. */
export const serveCredentials = (path: string, parts: Parts) =>
  listen(
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const call = Schema.decodeUnknownOption(CredentialCall)(yield* request.json)
      if (Option.isNone(call)) return HttpServerResponse.text("that is no request of the helper", { status: 400 })
      const answer = yield* decide(parts, call.value)
      return Result.match(answer, {
        onSuccess: (text) => HttpServerResponse.text(text),
        onFailure: (reason) => HttpServerResponse.text(reason, { status: 403 })
      })
    }),
    { path, connectionsMax: CREDENTIAL_CONNECTIONS_MAX }
  )
