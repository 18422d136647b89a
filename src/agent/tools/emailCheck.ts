/** choir.email.check: whether there is new mail in the account that the agent is bound to. */
import { Effect, Schema } from "effect"
import { llmView } from "#src/agent/model/llmView.ts"
import { makeMailAccount } from "#src/agent/mail/MailAccount.ts"
import { checkMail } from "#src/agent/mail/readMail.ts"
import { sendersOf } from "./emailReceive.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

const CHECK_TIMEOUT_MS = 30_000

const Input = Schema.Struct({
  folder: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(200), Schema.isPattern(/^[^\0\r\n]*$/u, { message: "one line" })).annotate({
      description: "Default INBOX"
    })
  ),
  since_uid: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4_294_967_295 })).annotate({
      description: "Only mails after this, the last_uid of an earlier check"
    })
  )
})

export const emailCheck = Effect.gen(function* () {
  const account = yield* makeMailAccount
  const decode = decodeInput(Input)
  const tool: Tool = {
    llm: llmView("choir.email.check", "Count new and unread mails, with senders and subjects.", Input),
    effect: "none",
    lanes: "both",
    prepare: Effect.fn("emailCheck.prepare")(function* (raw) {
      const { folder = "INBOX", since_uid } = yield* decode(raw)
      return {
        locks: [],
        timeout_ms: CHECK_TIMEOUT_MS,
        run: () =>
          account.pipe(
            Effect.flatMap((taken) => checkMail(taken, folder, since_uid)),
            Effect.map(({ mails, new_since, ...counts }): ToolOutcome => ({
              status: "success",
              summary:
                new_since === undefined ? `${counts.unread} unread` : `${new_since} new, ${counts.unread} unread`,
              output: {
                ...counts,
                ...(new_since === undefined ? {} : { new_since }),
                mails: mails.map((mail) => ({ ...mail, to: [...mail.to] }))
              },
              sources: sendersOf(mails)
            })),
            Effect.catch((error) => Effect.succeed(refusal(error)))
          )
      }
    })
  }
  return tool
})
