/** What git asks a credential helper, and whether it may have an answer (D14). Pure. */
import { Result } from "effect"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import { coversHttps } from "#src/shared/git/gitRemotes.ts"
import { CREDENTIAL_REQUEST_BYTES_MAX } from "./credentialHelper.ts"

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
  if (FORBIDDEN.test(text)) return Result.fail("the request holds CR or NUL")
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

/** The answer to git, or a sentence for whoever reads git's stderr. The secret is a token or `user:token`. */
export const answerRequest = (text: string, identity: GitIdentity, secret: string): Result.Result<string, string> =>
  Result.flatMap(readRequest(text), (request) => {
    if (!mayGo(identity.remotes, request)) {
      const allowed = identity.remotes?.filter((remote) => remote.startsWith("https:")).join(", ")
      return Result.fail(
        `${request.protocol}://${request.host}/${request.path} gets no credentials; the operator allows ${allowed === undefined || allowed === "" ? "no https remote" : allowed}`
      )
    }
    const [, user = request.username ?? USER, password = secret] = /^([^:]+):(.+)$/su.exec(secret) ?? []
    return /[\r\n\0]/u.test(secret)
      ? Result.fail("the identity's secret is no token of one line")
      : Result.succeed(`username=${user}\npassword=${password}\n`)
  })
