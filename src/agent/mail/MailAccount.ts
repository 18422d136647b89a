/** The e-mail account that the agent is bound to, as one call sees it: its servers, and its credentials, which are in memory alone. */
import { Effect, Redacted, Schema } from "effect"
import type { EmailAccount } from "#schema/EmailAccount.ts"
import { isLoopback } from "#schema/Transport.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { makeScrub } from "#src/agent/settings/scrub.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { UNSEEN } from "#src/shared/text/unseenCharacters.ts"

/** A connection to a mail server, its greeting, and one answer of it. */
export const MAIL_ANSWER_MS_MAX = 20_000
/** Characters of a server's words that a model is shown. */
const SERVER_WORDS_CHARS_MAX = 300

/** A call that failed before it could have had an effect. */
export class MailProblem extends Schema.TaggedError<MailProblem>()("MailProblem", { problem: Schema.String }) {
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

/** Printable text on one line, since a server may say anything. */
export const serverWords = (error: unknown, { scrub }: Pick<MailAccount, "scrub">): string => {
  const words =
    typeof error === "object" && error !== null
      ? [
          "responseText" in error && typeof error.responseText === "string" ? error.responseText : undefined,
          "response" in error && typeof error.response === "string" ? error.response : undefined,
          error instanceof Error ? error.message : undefined
        ].find((text) => text !== undefined && text !== "")
      : undefined
  return scrub(words ?? String(error))
    .replaceAll(UNSEEN, " ")
    .replaceAll(/\s+/gu, " ")
    .slice(0, SERVER_WORDS_CHARS_MAX)
    .toWellFormed()
    .trim()
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
