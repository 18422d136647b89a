/** A mail as a model is shown it. Its report is a stranger's: here it gets its limits, and loses what nobody sees. Pure. */
import { UNSEEN, withoutUnseen } from "#src/shared/text/unseenCharacters.ts"
import {
  MAIL_FILES_MAX,
  MAIL_PEOPLE_MAX,
  MAIL_TEXT_CHARS_MAX,
  type MailPerson,
  type MailRead,
  type MailTrait,
  REPORT_TEXT_CHARS_MAX
} from "./mailProtocol.ts"

/** Characters of a header that a model is shown. */
const HEADER_CHARS_MAX = 500
const TRAITS_MAX = 5

export interface MailPart {
  readonly name: string
  readonly type: string
  readonly bytes: number
  /** Absent where nobody asked for it, and of a file that is too large. */
  readonly content?: Uint8Array
}

export interface ShownMail {
  /** The address that the mail gives as its sender's; empty where it gives none. */
  readonly from: string
  readonly from_name: string
  readonly to: ReadonlyArray<string>
  readonly cc: ReadonlyArray<string>
  readonly reply_to: ReadonlyArray<string>
  readonly subject: string
  readonly date: string
  readonly message_id: string
  readonly text: string
  readonly is_cut: boolean
  readonly traits: ReadonlyArray<MailTrait>
  readonly files: ReadonlyArray<MailPart>
  readonly files_left_out: number
}

/** A header on one line, without what cannot be seen. */
export const headerText = (text: string | undefined): string =>
  (text ?? "")
    .slice(0, 4 * HEADER_CHARS_MAX)
    .replaceAll(UNSEEN, " ")
    .replaceAll(/\s+/gu, " ")
    .trim()
    .slice(0, HEADER_CHARS_MAX)
    .toWellFormed()

/** Body text without control and invisible characters. */
const bodyText = (text: string): string =>
  withoutUnseen(text.replaceAll(/\r\n?/gu, "\n"))
    .replaceAll(/[ \t]+$/gmu, "")
    .replaceAll(/\n{3,}/gu, "\n\n")
    .toWellFormed()
    .trim()

/** A file name that is a name: no path, no hidden file, nothing invisible. */
const safeFileName = (name: string | null, index: number): string => {
  const last = (name ?? "").slice(0, 1000).replaceAll("\\", "/").split("/").at(-1) ?? ""
  const safe = last
    .normalize("NFKC")
    .replaceAll(UNSEEN, "\0")
    .replaceAll(/[^\p{L}\p{N}._ -]+/gu, "_")
    .replace(/^[. -]+/u, "")
    .slice(-80)
  return safe.toWellFormed() === "" ? `file-${index + 1}` : safe.toWellFormed()
}

const addresses = (people: ReadonlyArray<MailPerson>): ReadonlyArray<string> =>
  people.slice(0, MAIL_PEOPLE_MAX).flatMap(({ address }) => (address === "" ? [] : [headerText(address)]))

export const shownMail = (report: MailRead): ShownMail => {
  const text = bodyText(report.text.slice(0, REPORT_TEXT_CHARS_MAX))
  return {
    from: headerText(report.from.address),
    from_name: headerText(report.from.name),
    to: addresses(report.to),
    cc: addresses(report.cc),
    reply_to: addresses(report.reply_to),
    subject: headerText(report.subject),
    date: headerText(report.date),
    message_id: headerText(report.message_id),
    text: text.slice(0, MAIL_TEXT_CHARS_MAX).toWellFormed(),
    is_cut: report.is_cut || text.length > MAIL_TEXT_CHARS_MAX,
    traits: report.traits.slice(0, TRAITS_MAX),
    files: report.files.slice(0, MAIL_FILES_MAX).map(({ base64, bytes, name, type }, index) => ({
      name: safeFileName(name, index),
      type: headerText(type).slice(0, 100),
      bytes,
      ...(base64 === undefined ? {} : { content: Buffer.from(base64, "base64") })
    })),
    files_left_out: report.files_left_out
  }
}
