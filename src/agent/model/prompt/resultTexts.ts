/**
 * The texts of Choir's own tools' results: one pure function of the committed output for each tool, by the name that models use. A tool without one,
 * or an output of another shape, reads as `toolText.ts` has it for every tool.
 */
import { Option, Schema } from "effect"
import { MemoryAnswer, type MemoryHit } from "#schema/Memory.ts"
import { shownName } from "#schema/Tool.ts"
import { counted, plural } from "#src/shared/text/counts.ts"
import { withoutEnd } from "#src/shared/text/withoutEnd.ts"
import { placeOf } from "./recalledNote.ts"
import { EXEC, FS_SEARCH, type Offered } from "#src/agent/model/offeredTools.ts"
import { fitMiddle, fitting, numbered, type NumberedLine, SHOWN_LINE_CHARS_MAX, shortLine } from "./textParts.ts"

/** A committed result, and the bytes that its text may take. */
export interface ResultView {
  readonly status: string
  readonly summary: string
  readonly output: Schema.Json
  readonly room: number
  /** The tools of the lane that reads it. */
  readonly offered: Offered
}

/** The text, and whether a part of it is missing that the text itself shows no way to. */
export interface ResultText {
  readonly text: string
  readonly isCut: boolean
}

export const uncut = (text: string): ResultText => ({ text, isCut: false })

type Render = (result: ResultView) => ResultText | undefined

/** A text for outputs of one shape alone. */
const shaped = <A>(schema: Schema.Decoder<A>, text: (output: A, result: ResultView) => string | ResultText): Render => {
  const decode = Schema.decodeUnknownOption(schema)
  return (result) => {
    const output = decode(result.output)
    if (Option.isNone(output)) return undefined
    const shown = text(output.value, result)
    return typeof shown === "string" ? uncut(shown) : shown
  }
}

const firstOf =
  (...texts: ReadonlyArray<Render>): Render =>
  (result) => {
    for (const text of texts) {
      const found = text(result)
      if (found !== undefined) return found
    }
    return undefined
  }

/** Bytes for the last line of a text, which says where to continue. */
const LAST_LINE_BYTES = 256

const bodyRoom = ({ room }: ResultView): number => room - LAST_LINE_BYTES

/** The line first, where there is more than an empty one. */
const led = (first: string, text: string): string => (text === "" ? first : `${first}\n${text}`)

const Listing = Schema.Struct({ path: Schema.String, entries: Schema.Array(Schema.String), truncated: Schema.Boolean })

const listing = shaped(Listing, ({ entries, path, truncated }, result) => {
  const shown = fitting(entries, bodyRoom(result))
  const more = truncated || shown.length < entries.length ? " or more" : ""
  const count = shown.length === 1 ? "1 entry" : `${counted(shown.length)} entries`
  return [...shown, `${count}${more} in ${path === "" ? "the workspace" : `${path}/`}`].join("\n")
})

const FileLines = Schema.Struct({
  path: Schema.String,
  content: Schema.String,
  first_line: Schema.Int,
  last_line: Schema.Int,
  lines_total: Schema.Int
})

/** Numbers of cut lines that one text names. */
const CUT_LINES_TOLD_MAX = 5

/** The way to the rest of lines that are cut, with a tool that the lane has. */
const restOfLines = (cut: ReadonlyArray<number>, offered: Offered): string => {
  const told = cut.slice(0, CUT_LINES_TOLD_MAX).join(", ")
  const which = `${cut.length === 1 ? "line" : "lines"} ${told}${cut.length > CUT_LINES_TOLD_MAX ? ", …" : ""} cut`
  const from = SHOWN_LINE_CHARS_MAX + 1
  if (offered.has(EXEC))
    return `${which}: ${EXEC} shows the rest, as sed -n ${cut[0]}p FILE | cut -c ${from}-${from + SHOWN_LINE_CHARS_MAX - 1}`
  return offered.has(FS_SEARCH) ? `${which}: ${FS_SEARCH} in this file shows the text around what it finds` : which
}

const fileLines = shaped(FileLines, ({ content, first_line, last_line, lines_total, path }, result) => {
  if (lines_total === 0) return `${path} is empty`
  const raw = content.replace(/\n$/u, "").split("\n")
  const isCrlf = raw.length > 1 && raw.slice(0, -1).every((line) => line.endsWith("\r"))
  const lines = raw.map((text, index) =>
    numbered({ line: first_line + index, text: isCrlf ? text.replace(/\r$/u, "") : text })
  )
  const shown = fitting(lines, bodyRoom(result))
  const last = shown.length < lines.length ? first_line + shown.length - 1 : last_line
  const isEnd = last >= lines_total
  const long = raw
    .slice(0, shown.length)
    .flatMap((text, at) => (text.length > SHOWN_LINE_CHARS_MAX ? [first_line + at] : []))
  return [
    ...shown,
    [
      `lines ${first_line}-${last} of ${counted(lines_total)}`,
      ...(isEnd ? [] : [`read on with offset ${last + 1}`]),
      ...(long.length === 0 ? [] : [restOfLines(long, result.offered)]),
      ...(isCrlf ? ["the lines end in CRLF"] : []),
      ...(isEnd && shown.length === lines.length && !content.endsWith("\n") ? ["no line break at the end"] : [])
    ].join("; ")
  ].join("\n")
})

const summaryAlone: Render = ({ status, summary }) => uncut(status === "success" ? summary : "")

const Lines = Schema.Array(Schema.Struct({ line: Schema.Int, text: Schema.String }))

const Written = Schema.Struct({ path: Schema.String, excerpt: Schema.optionalKey(Lines) })

/** The lines, with a mark between those that do not stand together. */
const excerpt = (lines: ReadonlyArray<NumberedLine>): string =>
  lines
    .map((line, at) =>
      (lines[at - 1]?.line ?? line.line - 1) < line.line - 1 ? `…\n${numbered(line)}` : numbered(line)
    )
    .join("\n")

const written = shaped(Written, ({ excerpt: lines = [] }, { summary }) => led(summary, excerpt(lines)))

const NotWritten = Schema.Struct({
  error: Schema.String,
  nearest: Schema.optionalKey(Lines),
  diff: Schema.optionalKey(Schema.String)
})

const notWritten = shaped(NotWritten, ({ diff = "", nearest = [] }, { room }) =>
  [excerpt(nearest), fitMiddle(diff, room)].filter((part) => part !== "").join("\n")
)

const Found = Schema.Struct({
  matches: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      line: Schema.Int,
      text: Schema.String,
      context: Schema.optionalKey(Schema.Boolean)
    })
  ),
  truncated: Schema.Boolean,
  note: Schema.optionalKey(Schema.String)
})

/** Matching lines below the name of their file, as `12:text`, and lines around them as `12-text`. */
const found = shaped(Found, ({ matches, note, truncated }, result) => {
  if (matches.length === 0) return result.summary
  const lines = matches.map(({ context = false, line, path, text }, at) => {
    const before = matches[at - 1]
    const gap = context || before?.context === true ? "--\n" : ""
    const head = before?.path !== path ? `${path}\n` : before.line < line - 1 ? gap : ""
    return `${head}${line}${context ? "-" : ":"}${text}`
  })
  const shown = fitting(lines, bodyRoom(result))
  const hits = matches.slice(0, shown.length).filter(({ context }) => context !== true)
  const files = new Set(hits.map(({ path }) => path)).size
  const where = `${plural(hits.length, "matching line")} in ${plural(files, "file")}`
  const more = truncated || shown.length < lines.length
  const last = more ? `${where} shown, and there are more: narrow the pattern, path or glob` : where
  return [...shown, note === undefined ? last : `${last}, ${note}`].join("\n")
})

const Names = Schema.Struct({
  paths: Schema.Array(Schema.String),
  truncated: Schema.Boolean,
  note: Schema.optionalKey(Schema.String)
})

const names = shaped(Names, ({ note, paths, truncated }, result) => {
  if (paths.length === 0) return result.summary
  const shown = fitting(paths, bodyRoom(result))
  const more = truncated || shown.length < paths.length
  return [
    ...shown,
    ...(more ? [`${plural(shown.length, "file")} shown, and there are more: narrow the pattern, path or glob`] : []),
    ...(note === undefined ? [] : [`found ${note}`])
  ].join("\n")
})

const Printed = Schema.Struct({ exit_code: Schema.Int, stdout: Schema.String, stderr: Schema.String })

/** Standard output, and behind a mark standard error; the shorter one leaves its room to the other. */
const printed = shaped(Printed, (output, result) => {
  const [stdout, stderr] = [withoutEnd(output.stdout, "\n"), withoutEnd(output.stderr, "\n")]
  const half = Math.floor(bodyRoom(result) / 2)
  const roomBeside = (text: string) => 2 * half - Math.min(half, Buffer.byteLength(text))
  const [out, err] = [fitMiddle(stdout, roomBeside(stderr)), fitMiddle(stderr, roomBeside(stdout))]
  const text = [...(out === "" ? [] : [out]), ...(err === "" ? [] : [`stderr:\n${err}`])].join("\n")
  return {
    text: result.status === "success" ? led(`exit code ${output.exit_code}`, text) : text,
    isCut: out !== stdout || err !== stderr
  }
})

const Hits = Schema.Struct({
  hits: Schema.Array(
    Schema.Struct({
      rev: Schema.Int,
      hash: Schema.String,
      event_type: Schema.String,
      created_at: Schema.String,
      tool: Schema.optionalKey(Schema.String),
      excerpt: Schema.String
    })
  ),
  next_before_rev: Schema.optionalKey(Schema.Int),
  problem: Schema.optionalKey(Schema.String)
})

/** Digits of an event's hash, enough to ask for it. */
const HASH_DIGITS = 12

const hits = shaped(Hits, ({ hits: all, next_before_rev, problem }, result) => {
  const texts = all.map(
    ({ created_at, event_type, excerpt: text, hash, rev, tool }) =>
      `rev ${rev} ${event_type}${tool === undefined ? "" : ` of ${shortLine(shownName(tool), 64)}`} ${created_at} hash ${hash.slice(0, HASH_DIGITS)}\n${text}`
  )
  const shown = fitting(texts, bodyRoom(result))
  const left = all[shown.length]
  const before = left === undefined ? next_before_rev : (all[shown.length - 1]?.rev ?? left.rev)
  return [
    ...shown,
    ...(shown.length === 0 ? [result.summary] : []),
    ...(before === undefined ? [] : [`earlier events: search again with before_rev ${before}`]),
    ...(problem === undefined ? [] : [problem.slice(0, LAST_LINE_BYTES)])
  ].join("\n")
})

/** A hit of long-term memory: date, place and mark, then its words. A fact without a key is deleted by its id. */
const longTermHit = (hit: MemoryHit): string => {
  const { agent, id, said_at, store, text, tier, untrusted } = hit
  const marks = [
    ...(tier === "long_term_summary" ? ["summary"] : []),
    ...(agent === undefined ? [] : [`of agent ${agent}`]),
    ...(untrusted === true ? ["untrusted"] : []),
    ...(store === "knowledge" && hit.key === undefined ? [`id ${id}`] : [])
  ]
  return `${[`${said_at.slice(0, 10)} ${placeOf(hit)}`, ...marks].join(", ")}\n${text}`
}

const longTermHits = shaped(MemoryAnswer, ({ hits: all, ranked_by }, result) => {
  if (all.length === 0) return result.summary
  const shown = fitting(all.map(longTermHit), bodyRoom(result))
  const notes = [
    ...(shown.length < all.length
      ? [`${plural(all.length - shown.length, "more hit")}: ask with a smaller limit or narrower words`]
      : []),
    ...(ranked_by === "words" ? ["ranked by words alone"] : [])
  ]
  return [...shown, ...notes].join("\n")
})

/** By the wire name of the tool. */
export const RESULT_TEXTS: ReadonlyMap<string, Render> = new Map<string, Render>([
  ["choir-exec", printed],
  [
    "choir-fs-read",
    firstOf(
      fileLines,
      listing,
      shaped(Schema.Struct({ binary: Schema.Boolean }), (_, { summary }) => summary)
    )
  ],
  ["choir-fs-write", firstOf(notWritten, written)],
  ["choir-fs-edit", firstOf(notWritten, written)],
  ["choir-fs-search", firstOf(found, names)],
  ["choir-fs-find", names],
  ["choir-memory-query", firstOf(hits, longTermHits)],
  ["choir-memory-upsert", summaryAlone],
  ["choir-memory-delete", summaryAlone],
  ["choir-plan-set", summaryAlone],
  ["choir-plan-cancel", summaryAlone],
  ["choir-core-spawn", summaryAlone],
  ["choir-core-inject", summaryAlone],
  ["choir-core-cancel", summaryAlone],
  ["choir-propose", summaryAlone],
  ["choir-propose-tool", summaryAlone],
  ["choir-propose-skill", summaryAlone],
  ["choir-propose-config_change", summaryAlone],
  ["choir-propose-repo_change", summaryAlone]
])
