/** Reading an account's mail. Nothing is marked as read: the person's own mail program may rely on that. */
import type { FetchMessageObject, ImapFlow, SearchObject } from "imapflow"
import { Effect } from "effect"
import type { MailReader } from "./mailReader.ts"
import { sameAddress } from "./Draft.ts"
import { imapStep, inFolder, MAIL_BYTES_MAX, openImap } from "./imap.ts"
import { type MailAccount, MailProblem } from "./MailAccount.ts"
import { headerText } from "./shownMail.ts"

/** Mails of one list, and unread ones of one check. */
export const MAIL_LIST_MAX = 50
const CHECKED_MAX = 10

/** One line of a list. */
export interface MailLine {
  readonly uid: number
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly subject: string
  readonly date: string
  readonly unread: boolean
  readonly bytes: number
}

const lineOf = ({ envelope, flags, internalDate, size, uid }: FetchMessageObject): MailLine => ({
  uid,
  from: headerText(envelope?.from?.[0]?.address),
  to: (envelope?.to ?? []).slice(0, 10).map(({ address }) => headerText(address)),
  subject: headerText(envelope?.subject),
  date: internalDate === undefined ? "" : new Date(internalDate).toISOString(),
  unread: flags?.has(String.raw`\Seen`) !== true,
  bytes: size ?? 0
})

const LINE = { envelope: true, flags: true, internalDate: true, size: true } as const

const fetchLines = async (client: ImapFlow, uids: ReadonlyArray<number>) => {
  if (uids.length === 0) return []
  const found = await client.fetchAll(uids.join(","), LINE, { uid: true })
  return found.map(lineOf).toSorted((a, b) => b.uid - a.uid)
}

export interface MailQuery {
  readonly folder: string
  readonly search: SearchObject
  readonly limit: number
  readonly before_uid?: number | undefined
}

/** The newest mails that fit, the newest first. `more` of them are older. */
export const listMail = Effect.fn("mail.list")(function* (account: MailAccount, query: MailQuery) {
  const client = yield* openImap(account)
  return yield* inFolder(client, account, query.folder, true, async () => {
    const found = await client.search({ ...query.search, deleted: false }, { uid: true })
    const before = query.before_uid ?? Infinity
    const uids = (found === false || found === undefined ? [] : found).filter((uid) => uid < before)
    const shown = uids.toSorted((a, b) => a - b).slice(-query.limit)
    return { mails: await fetchLines(client, shown), more: uids.length - shown.length }
  })
}, Effect.scoped)

/** One mail as a whole. */
export const readMail = Effect.fn("mail.read")(function* (
  account: MailAccount,
  { folder, uid }: { readonly folder: string; readonly uid: number },
  read: MailReader
) {
  const client = yield* openImap(account)
  const found = yield* inFolder(client, account, folder, true, async () => {
    const line = await client.fetchOne(String(uid), LINE, { uid: true })
    if (line === false || line === undefined) return undefined
    if ((line.size ?? 0) > MAIL_BYTES_MAX) return { line: lineOf(line), raw: undefined }
    const whole = await client.fetchOne(String(uid), { source: { maxLength: MAIL_BYTES_MAX } }, { uid: true })
    return { line: lineOf(line), raw: whole === false || whole === undefined ? undefined : whole.source }
  })
  if (found === undefined)
    return yield* new MailProblem({ problem: `there is no mail ${uid} in ${JSON.stringify(folder.slice(0, 100))}` })
  if (found.raw === undefined)
    return yield* new MailProblem({
      problem: `the mail ${uid} has ${found.line.bytes} bytes; at most ${MAIL_BYTES_MAX} are read`
    })
  const mail = yield* read(found.raw)
  // Its sender's address is that of the envelope where the two differ in nothing but spelling.
  return { line: found.line, mail, from: sameAddress(mail.from === "" ? found.line.from : mail.from) }
}, Effect.scoped)

/** How many mails a folder holds, and the newest unread ones. */
export const checkMail = Effect.fn("mail.check")(function* (
  account: MailAccount,
  folder: string,
  since_uid: number | undefined
) {
  const client = yield* openImap(account)
  const status = yield* imapStep(account, `the folder ${JSON.stringify(folder.slice(0, 100))}`, () =>
    client.status(folder, { messages: true, unseen: true, uidNext: true, uidValidity: true })
  )
  if (status === false)
    return yield* new MailProblem({ problem: `there is no folder ${JSON.stringify(folder.slice(0, 100))}` })
  const { mails, count } = yield* inFolder(client, account, folder, true, async () => {
    const search: SearchObject = since_uid === undefined ? { seen: false } : { uid: `${since_uid + 1}:*` }
    const found = await client.search({ ...search, deleted: false }, { uid: true })
    // A range that ends with * always holds the newest mail.
    const uids = (found === false || found === undefined ? [] : found).filter((uid) => uid > (since_uid ?? 0))
    const newest = uids.toSorted((a, b) => a - b).slice(-CHECKED_MAX)
    return { mails: await fetchLines(client, newest), count: uids.length }
  })
  return {
    messages: status.messages ?? 0,
    unread: status.unseen ?? 0,
    new_since: since_uid === undefined ? undefined : count,
    last_uid: Math.max(0, (status.uidNext ?? 1) - 1),
    uid_validity: String(status.uidValidity ?? 0),
    mails
  }
}, Effect.scoped)
