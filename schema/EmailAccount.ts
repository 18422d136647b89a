/** An e-mail account of config.json (docs/mail.md). */
import { Schema } from "effect"
import { SecretName } from "./Ids.ts"
import { Port } from "./Port.ts"
import { withDefault } from "./withDefault.ts"

const Text = Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" }))

/** `secret` is `user:password`. */
export const EmailAccount = Schema.Struct({
  /** The sender; without it the user of the secret. */
  address: Schema.optionalKey(Text),
  /** Beside the address of what it sends. */
  name: Schema.optionalKey(Text),
  smtp_host: Text,
  smtp_port: Port,
  imap_host: Text,
  imap_port: Port,
  sharing: withDefault(Schema.Literals(["exclusive", "shared"]), "exclusive"),
  /** Whom it writes to without a person: those that it wrote to before, or everybody. */
  recipients: withDefault(Schema.Literals(["known", "any"]), "known"),
  /** Addresses, and domains as `@example.com`, that it knows from the start. */
  known_recipients: withDefault(
    Schema.Array(
      Schema.String.check(
        Schema.isPattern(/^[!-?A-~]*@[!-?A-~]+$/u, { message: "must be an address or @domain" }),
        Schema.isMaxLength(254)
      )
    ).check(Schema.isMaxLength(1000)),
    []
  ),
  /** Without it the folder that the server marks as that of sent mail. */
  sent_folder: Schema.optionalKey(Text),
  secret: SecretName
})
export type EmailAccount = typeof EmailAccount.Type
