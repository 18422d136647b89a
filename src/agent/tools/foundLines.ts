/** Reads what ripgrep finds, a line of its JSON at a time, so that one long line or many of them cost a search no more than themselves. */
import { Option, Schema } from "effect"

/** Bytes of one line of ripgrep's output; of a longer one the ends are kept, which tell its file and its number. */
export const FOUND_LINE_BYTES_MAX = 8 * 1024 * 1024
/** Bytes kept of each end of a longer line. Its path and its first match are at the ends, and both are short or left out. */
const END_BYTES = 32 * 1024
/** Lines of a longer output are counted, not kept: more than a search shows, with all lines around its matches. */
const FOUND_LINES_MAX = 5000
/** Characters of a line that a search returns. */
export const SEARCH_LINE_CHARS_MAX = 400
/** Characters in front of the first match of a long line. */
const BEFORE_CHARS = 100

/** A line of a file that matches, or one near it. */
export interface FoundLine {
  readonly type: "match" | "context"
  readonly path: string
  /** From 1; `undefined` where a line was too long to tell it. */
  readonly line: number | undefined
  /** The line; if it is long, the part around its first match, marked with how many characters are cut. */
  readonly text: string
}

const Bytes = Schema.Union([Schema.Struct({ text: Schema.String }), Schema.Struct({ bytes: Schema.String })])
const Type = Schema.Literals(["match", "context"])

/** One line of ripgrep's JSON output. Lines of other types do not decode. */
const decodeFound = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      type: Type,
      data: Schema.Struct({
        path: Bytes,
        lines: Bytes,
        line_number: Schema.Natural,
        submatches: Schema.optionalKey(Schema.Array(Schema.Struct({ start: Schema.Natural })))
      })
    })
  )
)

/** The beginning of a line of ripgrep's JSON up to the text of the file's line, and what follows that text. */
const CHARS = String.raw`(?:[^"\\]|\\[^u]|\\u[0-9a-f]{4})*`
const BEGINNING = new RegExp(
  String.raw`^\{"type":"(match|context)","data":\{"path":(\{"\w+":"${CHARS}"\}),"lines":\{"text":"(${CHARS})`,
  "u"
)
const ENDING = /"\},"line_number":(\d+),"absolute_offset":\d+,"submatches":\[/u
const decodePath = Schema.decodeUnknownOption(Schema.fromJsonString(Bytes))
const decodeText = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.String))

const textOf = (bytes: typeof Bytes.Type): string =>
  "text" in bytes ? bytes.text : Buffer.from(bytes.bytes, "base64").toString("utf8")

/** The part of a line around its first match: a text copied from a line that looks whole would match nothing. */
const shownText = (whole: string, start_bytes: number): string => {
  const line = whole.trimEnd().toWellFormed()
  if (line.length <= SEARCH_LINE_CHARS_MAX) return line
  const at = Buffer.from(whole).toString("utf8", 0, start_bytes).length
  const from = Math.max(0, Math.min(at - BEFORE_CHARS, line.length - SEARCH_LINE_CHARS_MAX))
  const shown = line.slice(from, from + SEARCH_LINE_CHARS_MAX).toWellFormed()
  const after = line.length - from - SEARCH_LINE_CHARS_MAX
  return `${from === 0 ? "" : `[${from} cut] `}${shown}${after === 0 ? "" : ` [${after} cut]`}`
}

/** The lines of one entry, which has several where a pattern reaches over them. */
const foundIn = (text: string): ReadonlyArray<FoundLine> =>
  Option.match(decodeFound(text), {
    onNone: () => [],
    onSome: ({ data, type }) =>
      textOf(data.lines)
        .replace(/\n$/u, "")
        .split("\n", FOUND_LINES_MAX)
        .map((line, at) => ({
          type,
          path: textOf(data.path).toWellFormed(),
          line: data.line_number + at,
          text: shownText(line, at === 0 ? (data.submatches?.[0]?.start ?? 0) : 0)
        }))
  })

/** The ends of a line that was too long to be kept. */
const foundAtEnds = (head: string, tail: string): Option.Option<FoundLine> => {
  const [, type, path = "", text = ""] = BEGINNING.exec(head) ?? []
  const [, line] = ENDING.exec(tail) ?? []
  return Option.map(
    Option.all([Option.filter(Option.some(type), Schema.is(Type)), decodePath(path), decodeText(`"${text}"`)]),
    ([type, path, beginning]) => ({
      type,
      path: textOf(path).toWellFormed(),
      line: line === undefined ? undefined : Number(line),
      text: `${beginning.slice(0, SEARCH_LINE_CHARS_MAX).toWellFormed()} [the line is too long to show where it matches]`
    })
  )
}

/** Collects the lines of one search. */
export class FoundLines {
  readonly #lines: Array<FoundLine> = []
  #parts: Array<Buffer> = []
  #bytes = 0
  #head: string | undefined
  #left_out = 0

  /** The lines in ripgrep's order, after its output has ended. */
  get lines(): ReadonlyArray<FoundLine> {
    return this.#lines
  }

  /** Whether lines were found that are not among them. */
  get is_cut(): boolean {
    return this.#left_out > 0
  }

  push(chunk: Buffer): void {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, end))
      this.#endLine()
      from = end + 1
    }
    this.#add(chunk.subarray(from))
  }

  #add(bytes: Buffer): void {
    this.#parts.push(Buffer.from(bytes))
    this.#bytes += bytes.length
    if (this.#bytes <= FOUND_LINE_BYTES_MAX) return
    const whole = Buffer.concat(this.#parts)
    this.#head ??= whole.toString("utf8", 0, END_BYTES)
    this.#parts = [Buffer.from(whole.subarray(-END_BYTES))]
    this.#bytes = END_BYTES
  }

  #endLine(): void {
    const text = Buffer.concat(this.#parts).toString("utf8")
    const found = this.#head === undefined ? foundIn(text) : Option.toArray(foundAtEnds(this.#head, text))
    this.#parts = []
    this.#bytes = 0
    this.#head = undefined
    const kept = found.slice(0, FOUND_LINES_MAX - this.#lines.length)
    this.#lines.push(...kept)
    this.#left_out += found.length - kept.length
  }
}
