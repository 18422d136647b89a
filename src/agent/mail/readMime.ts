/** A message from the wire, read within limits: its author may have made it to be misread, or never to end. */
import { Effect } from "effect"
import { htmlText } from "./htmlText.ts"
import { MailProblem } from "./MailAccount.ts"
import { UNSEEN, withoutUnseen } from "#src/shared/text/unseenCharacters.ts"

/** Reading one message, with pauses for the agent's other work. */
const MIME_MS_MAX = 20_000
/** Characters of a mail's text and of a header that a model is shown, and files that are listed. */
export const MAIL_TEXT_CHARS_MAX = 24_000
const HEADER_CHARS_MAX = 500
export const MAIL_FILES_MAX = 50
const PEOPLE_MAX = 50

export interface MailPart {
  readonly name: string
  readonly type: string
  readonly bytes: Uint8Array
}

export interface ReadMail {
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
  /** Its plain part says something that its HTML does not show, as mail programs do. `text` is of the HTML, where that has any words. */
  readonly differs: boolean
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

interface Person {
  readonly address?: string | undefined
  readonly group?: ReadonlyArray<Person> | undefined
  readonly name: string
}

const addresses = (people: ReadonlyArray<Person> | undefined): ReadonlyArray<string> =>
  (people ?? [])
    .flatMap((person) => person.group ?? [person])
    .slice(0, PEOPLE_MAX)
    .flatMap(({ address }) => (address === undefined || address === "" ? [] : [headerText(address)]))

const bytesOf = (content: ArrayBuffer | Uint8Array | string): Uint8Array =>
  typeof content === "string" ? Buffer.from(content) : new Uint8Array(content)

/** Words of the plain part that the HTML lacks, from which on the two say different things. */
const OWN_WORDS_MIN = 3

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .replaceAll(/https?:\S+/giu, " ")
    .toLowerCase()
    .match(/[\p{L}\p{N}]{3,}/gu) ?? []

/** The words of a mail as a mail program shows them: those of its HTML where it has some. */
const shownWords = (plain: string, html: string): { readonly words: string; readonly differs: boolean } => {
  const isHtml = html.trim() !== ""
  const seen = isHtml ? htmlText(html) : ""
  // A mail of pictures alone often has its words in the plain part only.
  if (seen === "") return { words: plain, differs: isHtml && plain.trim() !== "" }
  const shown = new Set(wordsOf(seen))
  const own = new Set(wordsOf(plain.slice(0, 4 * MAIL_TEXT_CHARS_MAX)).filter((word) => !shown.has(word)))
  return { words: seen, differs: own.size >= OWN_WORDS_MIN }
}

/** The parts of a message, or why it cannot be read. */
export const readMime = Effect.fn("mail.readMime")(function* (raw: Uint8Array) {
  const { boundedMime } = yield* Effect.promise(() => import("./mailClients.ts"))
  const unreadable = (why: string) => new MailProblem({ problem: `the mail cannot be read: ${why}` })
  const mail = yield* Effect.tryPromise({
    try: (signal) => boundedMime(raw, signal),
    catch: (error) => unreadable(headerText(error instanceof Error ? error.message : ""))
  }).pipe(
    Effect.timeoutOrElse({
      duration: MIME_MS_MAX,
      orElse: () => Effect.fail(unreadable(`it takes more than ${MIME_MS_MAX} ms`))
    })
  )
  const { differs, words } = shownWords(mail.text ?? "", mail.html ?? "")
  const text = bodyText(words.slice(0, 4 * MAIL_TEXT_CHARS_MAX))
  const from = mail.from?.group?.[0] ?? mail.from
  const read: ReadMail = {
    from: headerText(from?.address),
    from_name: headerText(from?.name),
    to: addresses(mail.to),
    cc: addresses(mail.cc),
    reply_to: addresses(mail.replyTo),
    subject: headerText(mail.subject),
    date: headerText(mail.date),
    message_id: headerText(mail.messageId),
    text: text.slice(0, MAIL_TEXT_CHARS_MAX).toWellFormed(),
    is_cut: text.length > MAIL_TEXT_CHARS_MAX || words.length > 4 * MAIL_TEXT_CHARS_MAX,
    differs,
    files: mail.attachments.slice(0, MAIL_FILES_MAX).map(({ content, filename, mimeType }, index) => ({
      name: safeFileName(filename, index),
      type: headerText(mimeType).slice(0, 100),
      bytes: bytesOf(content)
    })),
    files_left_out: Math.max(0, mail.attachments.length - MAIL_FILES_MAX)
  }
  return read
})
