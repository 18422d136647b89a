/** The e-mail account that the agent is bound to, as one call sees it: its servers, and its credentials, which are in memory alone. */
import { Effect, Redacted, Schema } from "effect"
import type { EmailAccount } from "#schema/EmailAccount.ts"
import { type Source, Sources } from "#schema/Source.ts"
import { isLoopback } from "#schema/Transport.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { makeScrub } from "#src/agent/settings/scrub.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { sourceOf } from "#src/shared/session/sources.ts"
import { foreignText, oneLine } from "#src/shared/text/foreignText.ts"

/** A connection to a mail server, its greeting, and one answer of it. */
export const MAIL_ANSWER_MS_MAX = 20_000

/** A call that failed before it could have had an effect. `sources` are of what the server said, where it is repeated. */
export class MailProblem extends Schema.TaggedError<MailProblem>()("MailProblem", {
  problem: Schema.String,
  sources: Schema.optionalKey(Sources)
}) {
  override get message() {
    return this.problem
  }
}

export interface MailAccount {
  readonly config: EmailAccount
  readonly user: string
  readonly password: Redacted.Redacted
  /** The sender of what it sends. */
  readonly address: string
  /** Takes the credentials out of a text. */
  scrub(text: string): string
}

const textIn = (error: object, name: string): string | undefined => {
  const value: unknown = Object.getOwnPropertyDescriptor(error, name)?.value
  return typeof value === "string" && value !== "" ? value : undefined
}

/** Why a step with a server failed: with its label where the server may have written it, for it may say anything. */
export const serverWords = (
  error: unknown,
  { scrub }: Pick<MailAccount, "scrub">,
  host: string
): { readonly text: string; readonly sources?: ReadonlyArray<Source> } => {
  const isError = typeof error === "object" && error !== null
  const said = isError ? (textIn(error, "responseText") ?? textIn(error, "response")) : undefined
  // The system's own words. Those on a certificate repeat what stands in it.
  if (said === undefined && error instanceof Error && "syscall" in error) return { text: oneLine(scrub(error.message)) }
  return foreignText(sourceOf("mail", host), scrub(said ?? (error instanceof Error ? error.message : String(error))))
}

/** Credentials go nowhere without TLS but to this machine, whose certificate nobody has to vouch for. */
export const isThisMachine = (host: string): boolean => isLoopback(host)

/** Takes the account for one call. */
export const makeMailAccount = Effect.gen(function* () {
  const settings = yield* AgentSettings
  const secrets = yield* SecretStore
  return Effect.gen(function* () {
    const { email } = settings.current().config
    if (email === undefined) return yield* new MailProblem({ problem: "this agent no longer has an e-mail account" })
    const held = yield* secrets.get(email.secret)
    const [, user, password] = /^([^:]+):(.+)$/su.exec(held === undefined ? "" : Redacted.value(held)) ?? []
    if (user === undefined || password === undefined)
      return yield* new MailProblem({
        problem: `the e-mail account has no usable credentials: its secret must have the form user:password. The operator can set it: choirctl secret set ${email.secret}`
      })
    const address = email.address ?? user
    if (!address.includes("@"))
      return yield* new MailProblem({
        problem: "the e-mail account has no address: set email_accounts.<name>.address in config.json"
      })
    const account: MailAccount = {
      config: email,
      user,
      password: Redacted.make(password),
      address,
      scrub: makeScrub([password])
    }
    return account
  })
})
