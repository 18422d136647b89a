/**
 * The messages between the agent and the process that reads one mail: on its standard input an order as one line and then the mail as it came, on its
 * standard output one report as a line. What a report says is a stranger's, also about the mail itself.
 */
import { Schema } from "effect"

/** Bytes of a file beyond which it stays in the mail: tools do not read larger ones. */
export const KEPT_BYTES_MAX = 16 * 1024 * 1024
/** Characters of a mail's text that are shown, and those of a report, before what nobody sees is removed. */
export const MAIL_TEXT_CHARS_MAX = 24_000
export const REPORT_TEXT_CHARS_MAX = 4 * MAIL_TEXT_CHARS_MAX
/** Files that are listed, and people of one header. */
export const MAIL_FILES_MAX = 50
export const MAIL_PEOPLE_MAX = 50

export interface MailOrder {
  /** Whether the report has the bytes of the files. */
  readonly withFiles: boolean
}

/** Facts about a mail that its words do not show. */
export const MailTrait = Schema.Literals(["differs", "plain_first", "winmail", "smime", "pgp", "unread_invite"])
export type MailTrait = typeof MailTrait.Type

/** Why a mail is refused, by the words of what it has too much of where a number goes with it. */
export const MailRefusal = Schema.Literals([
  "bytes in a line",
  "paddings within base64",
  "boundaries of parts",
  "bytes of text",
  "lines",
  "parts within parts",
  "bytes of headers",
  "nested too deep",
  "broken"
])
export type MailRefusal = typeof MailRefusal.Type

const Person = Schema.Struct({ name: Schema.String, address: Schema.String })
const People = Schema.Array(Person)
export type MailPerson = typeof Person.Type

export const MailReport = Schema.Union([
  Schema.TaggedStruct("Read", {
    from: Person,
    to: People,
    cc: People,
    reply_to: People,
    subject: Schema.String,
    date: Schema.String,
    message_id: Schema.String,
    text: Schema.String,
    is_cut: Schema.Boolean,
    traits: Schema.Array(MailTrait),
    files: Schema.Array(
      Schema.Struct({
        name: Schema.NullOr(Schema.String),
        type: Schema.String,
        bytes: Schema.Natural,
        base64: Schema.optionalKey(Schema.String)
      })
    ),
    files_left_out: Schema.Natural
  }),
  /** More than `max` of something, or what else is wrong with it: never words of the mail. */
  Schema.TaggedStruct("Refused", { why: MailRefusal, max: Schema.optionalKey(Schema.Natural) })
])
export type MailReport = typeof MailReport.Type
export type MailRead = Extract<MailReport, { readonly _tag: "Read" }>
