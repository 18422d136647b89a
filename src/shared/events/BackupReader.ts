/** Reads a backup from its first byte to its last and proves it: shape, digests, and the chain of every session (R70). */
import { createHash, type Hash } from "node:crypto"
import { createReadStream } from "node:fs"
import { pipeline } from "node:stream"
import { createGunzip } from "node:zlib"
import { Effect, Option, Result, Runtime, Schema, Stream } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import {
  BACKUP_FORMAT,
  BackupEvent,
  type BackupHeader,
  BackupRecord,
  type BackupTable,
  EVENTS,
  RECORD_MARK
} from "./backupFormat.ts"
import { eventOf, ForgottenPayloads, readRow, UNLISTED } from "./eventRow.ts"
import { genesis, hex, nextDigest } from "./hashChain.ts"

/** One line of a backup: a row, or a record of the file. */
export const BACKUP_LINE_BYTES_MAX = 12 * 1024 * 1024
/** The size of the pieces in which a backup is read and compressed. */
const BACKUP_READ_BYTES = 256 * 1024

/** The file is not a whole backup. Nothing was changed because of it. */
export class BackupUnusable extends Schema.TaggedError<BackupUnusable>()("BackupUnusable", {
  file: Schema.String,
  line: Schema.Natural,
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get message() {
    const place = this.line === 0 ? "" : ` (line ${this.line})`
    return `${this.file} cannot be used as a backup: ${this.problem}${place}. Take another copy of it, or another backup`
  }
}

/** The content of a backup. */
export interface BackupSummary {
  readonly header: BackupHeader
  readonly rows: number
  readonly sessions: number
  readonly events: number
  /** Sessions whose stored events do not give their head; the first ones, with the reason. */
  readonly broken: ReadonlyArray<{ readonly session_id: SessionId; readonly reason: string }>
  /** The digest of the whole. */
  readonly sha256: string
}

/** An item of a backup: the part of a table that begins, or rows of it as they are written. */
export type BackupItem =
  | { readonly type: "header"; readonly header: BackupHeader }
  | { readonly type: "table"; readonly table: BackupTable }
  | { readonly type: "row"; readonly text: string }

const LINE_FEED = 0x0a
const BROKEN_MAX = 20
const strict = { onExcessProperty: "error" } as const
const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(BackupRecord), strict)
const decodeEvent = Schema.decodeUnknownOption(BackupEvent)

interface Part {
  readonly table: BackupTable
  readonly keys: string
  readonly hash: Hash
  rows: number
}

interface Chain {
  rev: number
  hash: Buffer
  broken: string | undefined
  readonly forgotten: ForgottenPayloads
}

/** Only such an event can list reduced payloads, and decoding the others would take far longer than proving them. */
const FORGETS = '"action":"forget"'

const parse = (text: string) => Result.try({ try: (): unknown => JSON.parse(text), catch: () => "it is not JSON" })

const beginChain = (session_id: SessionId): Chain => ({
  rev: 0,
  hash: genesis(session_id),
  broken: undefined,
  forgotten: new ForgottenPayloads()
})

type Chains = Map<SessionId, Chain>
type Heads = ReadonlyMap<SessionId, { readonly last_rev: number; readonly head: string | null }>

/** Continues the chain of an event's session; answers the problem of a row that is not an event. */
const takeEvent = (chains: Chains, value: unknown): string | undefined => {
  const event = Option.getOrUndefined(decodeEvent(value))
  if (event === undefined) return "the row is not an event"
  const chain = chains.get(event.session_id) ?? beginChain(event.session_id)
  chains.set(event.session_id, chain)
  if (chain.broken !== undefined) return undefined
  const read = readRow(event)
  if (Result.isFailure(read)) return void (chain.broken = `event ${event.rev}: ${read.failure}`)
  const text = read.success
  const next = nextDigest(chain.hash, event.rev, text.chained)
  if (event.rev !== chain.rev + 1) chain.broken = `after event ${chain.rev} comes event ${event.rev}`
  else if (!next.equals(event.hash)) chain.broken = `the digest of event ${event.rev} does not match`
  chain.forgotten.row(text, text.payload?.includes(FORGETS) === true ? Result.getOrUndefined(eventOf(text)) : undefined)
  chain.rev = event.rev
  chain.hash = next
  return undefined
}

/** The sessions whose chain does not end in their head, with the reason. */
const brokenSessions = (chains: Chains, heads: Heads): BackupSummary["broken"] => {
  const broken: Array<BackupSummary["broken"][number]> = []
  for (const session_id of new Set([...chains.keys(), ...heads.keys()])) {
    const head = heads.get(session_id)
    const chain = chains.get(session_id)
    const ends =
      chain === undefined ? { rev: 0, hash: hex(genesis(session_id)) } : { rev: chain.rev, hash: hex(chain.hash) }
    const matches = head?.last_rev === ends.rev && (head.head ?? hex(genesis(session_id))) === ends.hash
    const unlisted = chain?.forgotten.unlisted
    const changed = unlisted === undefined ? undefined : `event ${unlisted}: ${UNLISTED}`
    const reason = chain?.broken ?? (matches ? changed : "its last event does not match the recorded revision and hash")
    if (reason !== undefined && broken.length < BROKEN_MAX) broken.push({ session_id, reason })
  }
  return broken
}

const isOfEvents = ({ table: { schema, table } }: Part) => schema === EVENTS.schema && table === EVENTS.table

/** The row of a line, if it has the columns of its table. */
const rowIn = (text: string, { keys }: Part): Result.Result<object, string> =>
  Result.flatMap(parse(text), (value) =>
    typeof value !== "object" || value === null || Object.keys(value).join() !== keys
      ? Result.fail("the row does not have the columns of its table")
      : Result.succeed(value)
  )

/** The contents of a backup, line by line. @param digest of the lines before */
const makeContents = (digest: () => string) => {
  const chains = new Map<SessionId, Chain>()
  const heads = new Map<SessionId, { readonly last_rev: number; readonly head: string | null }>()
  let rows = 0
  let header: BackupHeader | undefined
  let part: Part | undefined
  let sha256: string | undefined

  const takeRow = (text: string): string | undefined => {
    if (part === undefined) return "a row is outside a table"
    const value = rowIn(text, part)
    if (Result.isFailure(value)) return value.failure
    part.rows += 1
    rows += 1
    return isOfEvents(part) ? takeEvent(chains, value.success) : undefined
  }

  /** The problem of a record, or the item that it is. */
  const takeRecord = (text: string): BackupItem | string | undefined => {
    const record = Option.getOrUndefined(decodeRecord(text))
    if (record === undefined) return "the line is not a record of a backup"
    if ((header === undefined) !== (record.type === "header")) return "the file does not begin with one header"
    if ((part === undefined) === (record.type === "table_end")) return "the tables do not end where they should"
    switch (record.type) {
      case "header":
        if (record.format > BACKUP_FORMAT)
          return `its format is ${record.format}, and this Choir reads up to ${BACKUP_FORMAT}: use the newer Choir`
        header = record
        return { type: "header", header: record }
      case "table":
        part = { table: record, keys: record.columns.join(), hash: createHash("sha256"), rows: 0 }
        return { type: "table", table: record }
      case "table_end": {
        const ended = part
        part = undefined
        return ended?.rows === record.rows && ended.hash.digest("hex") === record.sha256
          ? undefined
          : `the rows of ${ended?.table.table} are not those that were written`
      }
      case "session":
        heads.set(record.session_id, record)
        return undefined
      case "end":
        if (digest() !== record.sha256) return "its contents are not those that were written"
        sha256 = record.sha256
        return undefined
    }
  }

  return {
    isOver: () => sha256 !== undefined,
    /** The problem of a line, or the item that it is. */
    take: (text: string, bytes: Buffer): BackupItem | string | undefined => {
      if (text.startsWith(RECORD_MARK)) return takeRecord(text.slice(RECORD_MARK.length))
      part?.hash.update(bytes)
      return takeRow(text) ?? { type: "row", text }
    },
    summary: (): BackupSummary | undefined =>
      header === undefined || sha256 === undefined
        ? undefined
        : {
            header,
            rows,
            sessions: heads.size,
            events: [...chains.values()].reduce((sum, { rev }) => sum + rev, 0),
            broken: brokenSessions(chains, heads),
            sha256
          }
  }
}

/** A machine that takes bytes in any pieces. It holds a line and a digest for each session. */
const makeChecker = () => {
  const whole = createHash("sha256")
  const contents = makeContents(() => whole.copy().digest("hex"))
  let rest = Buffer.alloc(0)
  let line = 0

  const takeLine = (bytes: Buffer, items: Array<BackupItem>): string | undefined => {
    line += 1
    if (contents.isOver()) return "there is something after its end"
    const found = contents.take(bytes.subarray(0, -1).toString("utf8"), bytes)
    if (typeof found === "string") return found
    if (found !== undefined) items.push(found)
    whole.update(bytes)
    return undefined
  }

  return {
    line: () => line,
    push: (bytes: Uint8Array): Result.Result<ReadonlyArray<BackupItem>, string> => {
      const items: Array<BackupItem> = []
      let start = 0
      const piece = rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([rest, bytes])
      // What was left over holds no line feed, so that a long line is not searched again and again.
      for (let end = piece.indexOf(LINE_FEED, rest.length); end >= 0; end = piece.indexOf(LINE_FEED, start)) {
        const problem = takeLine(piece.subarray(start, end + 1), items)
        if (problem !== undefined) return Result.fail(problem)
        start = end + 1
      }
      rest = piece.subarray(start)
      return rest.length > BACKUP_LINE_BYTES_MAX ? Result.fail("a line is too long") : Result.succeed(items)
    },
    end: (): Result.Result<BackupSummary, string> => {
      const summary = rest.length > 0 ? undefined : contents.summary()
      return summary === undefined ? Result.fail("it is truncated") : Result.succeed(summary)
    }
  }
}

const reasonOf = (cause: unknown) => {
  const code: unknown = Reflect.get(Object(cause), "code")
  if (code === "ENOENT") return "there is no such file"
  if (code === "Z_BUF_ERROR") return "it is truncated"
  if (typeof code === "string" && code.startsWith("Z_")) return "it is not gzip, or damaged"
  return String(cause)
}

/** Reads and proves a backup; `use` is given what is found as it is found, before the end is known to be sound. */
export const readBackup = Effect.fn("BackupReader.read")(function* <E, R>(
  file: string,
  use: (items: ReadonlyArray<BackupItem>) => Effect.Effect<void, E, R>
) {
  const checker = makeChecker()
  const unusable = (problem: string) => new BackupUnusable({ file, line: checker.line(), problem })
  const bytes = yield* Effect.acquireRelease(
    Effect.sync(() =>
      pipeline(createReadStream(file), createGunzip({ chunkSize: BACKUP_READ_BYTES }), () => undefined)
    ),
    (stream) => Effect.sync(() => stream.destroy())
  )
  yield* Stream.fromAsyncIterable(bytes as AsyncIterable<Uint8Array>, (cause) => unusable(reasonOf(cause))).pipe(
    Stream.runForEach((piece): Effect.Effect<void, BackupUnusable | E, R> => {
      const found = checker.push(piece)
      return Result.isFailure(found) ? Effect.fail(unusable(found.failure)) : use(found.success)
    })
  )
  const summary = checker.end()
  return Result.isFailure(summary) ? yield* unusable(summary.failure) : summary.success
}, Effect.scoped)
