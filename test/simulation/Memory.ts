/**
 * What choird keeps of the words of sessions, by its own code for chunks: of a session that runs what left its window, of one that ended all of it. The state
 * between two pages is a text in a table, as it is in the database, and a page is one transaction.
 */
import { Schema } from "effect"
import { EDGE, type SessionId } from "#schema/Ids.ts"
import { type Chunk, chunkEvent, ChunkState, closeChunks, noChunks } from "#src/choird/memory/chunks.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import type { SessionTable } from "./Database.ts"
import { Violation } from "./Kernel.ts"
import { hasOutside } from "./outsideText.ts"
import type { World } from "./World.ts"

/** Events of a page; few, so that choird often dies between two. */
const PAGE_EVENTS_MAX = 12
/** What people write, apart from pasted binaries. */
const MESSAGE = /^message \d+/u

const stateText = Schema.fromJsonString(ChunkState)
const read = Schema.decodeSync(stateText)
const write = Schema.encodeSync(stateText)

interface Remembered {
  state: string
  readonly chunks: Array<Chunk>
}

/** How far the chunks of a session go: for one that runs to where its window begins. */
const untilOf = ({ events, status }: SessionTable): number =>
  status === "active"
    ? events.reduce(
        (until, { event }) =>
          event.event_type === "CompactionCommitted" && event.lane === EDGE
            ? Math.max(until, event.payload.boundary_rev)
            : until,
        0
      )
    : events.length

export class Memory {
  readonly #world: World
  readonly #sessions = new Map<SessionId, Remembered>()

  constructor(world: World) {
    this.#world = world
  }

  /** A page of each session that has something to remember. */
  second(): void {
    const { database, kernel } = this.#world
    if (database.isAway(kernel.now)) return
    for (const session of database.sessions.values()) this.#page(session)
  }

  #page(session: SessionTable): void {
    const { events, session_id } = session
    const known = this.#sessions.get(session_id) ?? { state: write(noChunks), chunks: [] }
    this.#sessions.set(session_id, known)
    const until = untilOf(session)
    let state = read(known.state)
    if (state.rev >= until) return
    for (const { event, hash } of events.slice(state.rev, Math.min(until, state.rev + PAGE_EVENTS_MAX))) {
      const done = chunkEvent(state, event, hex(hash))
      state = done.state
      this.#add(known, done.chunks)
    }
    if (state.rev >= until) {
      const last = closeChunks(state)
      state = last.state
      this.#add(known, last.chunks)
      this.#whole(session, known, until)
    }
    known.state = write(state)
  }

  /** Z1: no word from outside is in a chunk that may be shown unasked. Z2: no words are in two chunks as new ones. */
  #add({ chunks }: Remembered, more: ReadonlyArray<Chunk>): void {
    for (const chunk of more) {
      const { first_rev, lane, part, text, untrusted } = chunk
      if (!untrusted && hasOutside(text))
        throw new Violation("Z1", `text from outside may be shown unasked: ${text.slice(0, 200)}`)
      if (chunks.some((other) => other.lane === lane && other.first_rev === first_rev && other.part === part))
        throw new Violation("Z2", `the words of event ${first_rev} of ${lane} are in two chunks`)
      chunks.push(chunk)
    }
  }

  /** Z2: and all that people wrote is in one. */
  #whole({ events, session_id }: SessionTable, { chunks }: Remembered, until: number): void {
    for (const { event } of events.slice(0, until)) {
      if (event.event_type !== "UserMsg" || !MESSAGE.test(event.payload.text)) continue
      const { rev } = event
      const [words = ""] = MESSAGE.exec(event.payload.text) ?? []
      const isThere = chunks.some(
        ({ first_rev, lane, last_rev, text }) =>
          lane === EDGE && first_rev <= rev && rev <= last_rev && text.includes(words)
      )
      if (!isThere) throw new Violation("Z2", `"${words}" of ${session_id} is in no chunk`)
    }
  }
}
