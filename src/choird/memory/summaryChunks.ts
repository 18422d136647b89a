/** The summary of a session as chunks: its text, its facts, decisions and open points. Pure. */
import { EDGE } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import type { Summary } from "#schema/Summary.ts"
import { CHARS_A_TOKEN } from "#src/shared/model/usage.ts"
import { type Chunk, CHUNK_TOKENS_MAX, CHUNK_TOKENS_MIN, wordsHash } from "./chunks.ts"
import { splitText } from "./textParts.ts"

/** Characters for a date and a title, which each chunk begins with. */
const HEADER_CHARS = 280
const CHARS_MAX = CHUNK_TOKENS_MAX * CHARS_A_TOKEN - HEADER_CHARS
const CHARS_MIN = CHUNK_TOKENS_MIN * CHARS_A_TOKEN - HEADER_CHARS

/** The session that is summed up. */
export interface SummedUp {
  readonly last_rev: number
  readonly ended_at: string
  /** The hash of its last event. */
  readonly head: string
  readonly untrusted: boolean
  readonly sources?: ReadonlyArray<Source> | undefined
}

/** The lines of each topic. */
const topicsOf = ({ decisions, facts, open_points, summary }: Summary): ReadonlyArray<ReadonlyArray<string>> => {
  const list = (name: string, entries: ReadonlyArray<string>) =>
    entries.filter((entry) => entry.trim() !== "").map((entry) => `${name}: ${entry.trim()}`)
  return [
    summary.trim() === "" ? [] : splitText(summary, CHARS_MAX),
    list("Fact", facts),
    list("Decision", decisions),
    list("Open", open_points)
  ]
}

/** Lines together as long as there is room; a topic begins a chunk of its own unless the one before is short. */
const packed = (topics: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const parts: Array<string> = []
  for (const lines of topics) {
    let isFirst = true
    for (const line of lines) {
      const last = parts.at(-1)
      const fits = last !== undefined && last.length + 1 + line.length <= CHARS_MAX
      if (last === undefined || !fits || (isFirst && last.length >= CHARS_MIN)) parts.push(line)
      else parts[parts.length - 1] = `${last}\n${line}`
      isFirst = false
    }
  }
  return parts
}

/** The chunks of a summary. They cite the session's last event and cover all of its revisions. */
export const summaryChunks = (summary: Summary, session: SummedUp): ReadonlyArray<Chunk> =>
  packed(topicsOf(summary)).map((text, part) => ({
    lane: EDGE,
    first_rev: 1,
    last_rev: session.last_rev,
    part,
    source_events: [session.head],
    index: part,
    text: `[summary of a session until ${session.ended_at.slice(0, 10)}: ${summary.title.trim()}]\n${text}`,
    text_hash: wordsHash(text),
    untrusted: session.untrusted,
    said_at: session.ended_at,
    metadata: session.sources === undefined ? {} : { sources: session.sources }
  }))
