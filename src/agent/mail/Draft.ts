/** A mail that a model wrote: its addresses checked, its message id the call's, its bytes made once. */
import { Effect, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import type { MailAccount } from "./MailAccount.ts"

/** People that one mail goes to, and characters of an address (RFC 5321). */
export const MAIL_RECIPIENTS_MAX = 50
const ADDRESS_CHARS_MAX = 254

const ADDRESS =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})$/u

/** A plain address: a name beside it could look like another one. */
export const MailAddress = Schema.String.check(
  Schema.isMaxLength(ADDRESS_CHARS_MAX),
  Schema.isPattern(ADDRESS, { message: "an address is name@domain, in ASCII and without a display name" })
)

/** Addresses are compared as providers do: whatever the case is. */
export const sameAddress = (address: string): string => address.trim().toLowerCase()

export interface MailFile {
  readonly name: string
  readonly bytes: Uint8Array
}

export interface Draft {
  readonly to: ReadonlyArray<string>
  readonly cc: ReadonlyArray<string>
  readonly bcc: ReadonlyArray<string>
  readonly subject: string
  readonly text: string
  readonly in_reply_to?: string | undefined
  readonly files: ReadonlyArray<MailFile>
}

export const recipientsOf = ({ bcc, cc, to }: Pick<Draft, "bcc" | "cc" | "to">): ReadonlyArray<string> => [
  ...new Set([...to, ...cc, ...bcc].map(sameAddress))
]

/** The message id of a call's mail: the same for the same call, so that its fate can be looked up. */
export const messageIdOf = (call_id: CallId, address: string): string =>
  `<choir.${call_id}@${address.slice(address.lastIndexOf("@") + 1).toLowerCase()}>`

/** The bytes of a message. Blind copies are in the envelope alone. */
export const draftBytes = Effect.fnUntraced(function* (draft: Draft, account: MailAccount, call_id: CallId) {
  const { MailComposer } = yield* Effect.promise(() => import("./mailClients.ts"))
  const { cc, files, in_reply_to, subject, text, to } = draft
  const { name } = account.config
  const composer = new MailComposer({
    from: name === undefined ? account.address : { name, address: account.address },
    to: [...to],
    cc: [...cc],
    subject,
    text,
    messageId: messageIdOf(call_id, account.address),
    ...(in_reply_to === undefined ? {} : { inReplyTo: in_reply_to, references: in_reply_to }),
    attachments: files.map(({ bytes, name }) => ({ filename: name, content: Buffer.from(bytes) })),
    disableFileAccess: true,
    disableUrlAccess: true
  })
  return yield* Effect.promise(() => composer.compile().build())
})
