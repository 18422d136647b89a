/** A process that sends one mail by the account of its arguments, so that a test can kill it: `mailChild.ts ACCOUNT_JSON CALL_ID`. */
import { Effect, Redacted, Schema } from "effect"
import { EmailAccount } from "#schema/EmailAccount.ts"
import { CallId } from "#schema/Ids.ts"
import { sendMail } from "#src/agent/mail/sendMail.ts"

const [, , account = "", call_id = ""] = process.argv
const Given = Schema.Struct({ config: EmailAccount, user: Schema.String, password: Schema.String })
const { config, password, user } = Schema.decodeSync(Schema.fromJsonString(Given))(account)

const sent = await Effect.runPromise(
  sendMail(
    { config, user, password: Redacted.make(password), address: user, scrub: (text) => text },
    CallId.make(call_id),
    { to: ["bob@choir.test"], cc: [], bcc: [], subject: "Once", text: "x".repeat(20_000), files: [] }
  )
)
console.log(sent.response)
