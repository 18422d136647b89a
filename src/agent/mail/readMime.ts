/** A message from the wire as a report: its author may have made it to be misread, or never to end, so that it runs in a process of its own. */
import type { Attachment, Email } from "postal-mime"
import { boundedMime } from "./boundedMime.ts"
import { calendarText } from "./calendarText.ts"
import { deliveryText } from "./deliveryText.ts"
import {
  KEPT_BYTES_MAX,
  MAIL_FILES_MAX,
  type MailOrder,
  type MailRead,
  type MailTrait,
  REPORT_TEXT_CHARS_MAX
} from "./mailProtocol.ts"
import { peopleOf, senderOf } from "./mailPeople.ts"
import { mailWords } from "./mailWords.ts"
import { type PlainFile, withoutUuencoded } from "./uuencoded.ts"

/** Mails within a mail whose words are shown. */
const ATTACHED_MAX = 3

const bytesOf = ({ content }: Attachment): Uint8Array =>
  typeof content === "string" ? Buffer.from(content) : new Uint8Array(content)
const textOf = (file: Attachment): string => Buffer.from(bytesOf(file)).toString("utf8")

const isCalendar = ({ mimeType }: Attachment) => /^(?:text\/calendar|application\/ics)$/u.test(mimeType)
const isReport = ({ mimeType }: Attachment) => /^message\/(?:global-)?delivery-status$/u.test(mimeType)
const isMail = ({ mimeType }: Attachment) => /^message\/(?:rfc822|global)$/u.test(mimeType)

/** The invitations of a mail. Programs send the same one as a part and as a file. */
const invitations = ({ attachments }: Email) => {
  const texts = attachments.filter(isCalendar).map((file) => calendarText(textOf(file)))
  return { texts: [...new Set(texts)].filter((text) => text !== undefined), isUnread: texts.includes(undefined) }
}

const traitsOf = ({ attachments, headers }: Email): ReadonlyArray<MailTrait> => {
  const type = headers.find(({ key }) => key === "content-type")?.value.toLowerCase() ?? ""
  const has = (pattern: RegExp) => pattern.test(type) || attachments.some(({ mimeType }) => pattern.test(mimeType))
  return [
    ...(has(/^application\/(?:vnd\.)?ms-tnef/u) ? (["winmail"] as const) : []),
    ...(has(/^application\/(?:x-)?pkcs7-mime/u) ? (["smime"] as const) : []),
    ...(has(/^application\/pgp-encrypted/u) || type.includes("application/pgp-encrypted") ? (["pgp"] as const) : [])
  ]
}

/** The words of a mail within a mail. */
const attachedText = async (file: Attachment): Promise<string> => {
  const inner = await boundedMime(bytesOf(file))
  const { address, name } = senderOf(inner)
  const heads = {
    From: name === "" ? address : `${name} <${address}>`,
    Date: inner.date ?? "",
    Subject: inner.subject ?? ""
  }
  const lines = Object.entries(heads).flatMap(([key, value]) => (value === "" ? [] : [`${key}: ${value}`]))
  return ["---- attached mail ----", ...lines, "", mailWords(inner.text ?? "", inner.html ?? "").text].join("\n")
}

/** The words of the mails within a mail; of a report only the subject of the mail that it is about. */
const attachedTexts = async ({ attachments }: Email): Promise<ReadonlyArray<string>> => {
  const files = attachments.filter(isMail).slice(0, ATTACHED_MAX)
  if (!attachments.some(isReport)) return await Promise.all(files.map(attachedText))
  const subjects = await Promise.all(files.map(async (file) => (await boundedMime(bytesOf(file))).subject ?? ""))
  return subjects.flatMap((subject) => (subject === "" ? [] : [`Subject of the mail: ${subject}`]))
}

interface ListedFile {
  readonly name: string | null
  readonly type: string
  readonly bytes: Uint8Array
}

const filesOf = ({ attachments }: Email, plain: ReadonlyArray<PlainFile>): ReadonlyArray<ListedFile> => [
  ...attachments.map((file) => ({ name: file.filename, type: file.mimeType, bytes: bytesOf(file) })),
  ...plain.map(({ bytes, name }) => ({ name, type: "application/octet-stream", bytes }))
]

/** The report of a message. @throws where it cannot be read. */
export const readMime = async (raw: Uint8Array, { withFiles }: MailOrder): Promise<MailRead> => {
  const mail = await boundedMime(raw)
  const plain = withoutUuencoded(mail.text ?? "")
  const { differs, isPlainFirst, text } = mailWords(plain.text, mail.html ?? "")
  const { isUnread, texts } = invitations(mail)
  const reports = mail.attachments.filter(isReport).map((file) => deliveryText(textOf(file)))
  const parts = [...reports, ...texts, text, ...(await attachedTexts(mail))]
  const whole = parts.filter((part) => part.trim() !== "").join("\n\n")
  const files = filesOf(mail, plain.files)
  return {
    _tag: "Read",
    from: senderOf(mail),
    to: peopleOf(mail, "to"),
    cc: peopleOf(mail, "cc"),
    reply_to: peopleOf(mail, "reply-to"),
    subject: mail.subject ?? "",
    date: mail.date ?? "",
    message_id: mail.messageId ?? "",
    text: whole.slice(0, REPORT_TEXT_CHARS_MAX),
    is_cut: whole.length > REPORT_TEXT_CHARS_MAX,
    traits: [
      ...(differs ? (["differs"] as const) : []),
      ...(isPlainFirst ? (["plain_first"] as const) : []),
      ...traitsOf(mail),
      ...(isUnread ? (["unread_invite"] as const) : [])
    ],
    files: files.slice(0, MAIL_FILES_MAX).map(({ bytes, name, type }) => ({
      name,
      type,
      bytes: bytes.length,
      ...(withFiles && bytes.length <= KEPT_BYTES_MAX ? { base64: Buffer.from(bytes).toString("base64") } : {})
    })),
    files_left_out: Math.max(0, files.length - MAIL_FILES_MAX)
  }
}
