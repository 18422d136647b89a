/**
 * An agent that means harm, beside the others: each of its heartbeats is valid, chained and small, and its history never stops growing. choird's own
 * code decides about it and folds it. A session that choird freezes is followed by a new one.
 */
import { CORE_JOBS_MAX } from "#schema/Core.ts"
import { type ChoirEvent, EVENT_VERSION, type EventDraft } from "#schema/Event.ts"
import { AgentId, coreLane, EDGE, InboxId, type JobName, ResourceName } from "#schema/Ids.ts"
import { SNAPSHOT_BYTES_MAX } from "#src/choird/sessions/snapshots.ts"
import { chainEvent, hex } from "#src/shared/events/hashChain.ts"
import { SUMMARY_CHARS_MAX, SUMMARY_WORDS_CHARS_MAX } from "#src/shared/session/memory.ts"
import { REPORTS_OWED_MAX } from "#src/shared/session/State.ts"
import { started, stopped } from "../support/jobEvents.ts"
import { Database, type SessionTable } from "./Database.ts"
import { Violation } from "./Kernel.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** Jobs of one heartbeat at most. */
const JOBS_MAX = 60
/** Once this many run, jobs are filled with as much as a compaction may leave, as many as one heartbeat has room for. */
const JOBS_FILLED_FROM = 30
const JOBS_FILLED = 15
const AGENT = AgentId.make("hoarder")
const SALT_HEX = 32

const message: EventDraft = {
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id: InboxId.make("1"), dm: ResourceName.make("me"), text: "hi", attachments: [] }
}

const filled = (name: JobName): EventDraft => ({
  event_type: "CompactionCommitted",
  lane: coreLane(name),
  payload: {
    delta: { mode: "overwrite", summary_update: "s".repeat(SUMMARY_CHARS_MAX) },
    boundary_rev: 0,
    words: ["w".repeat(SUMMARY_WORDS_CHARS_MAX)]
  }
})

export class Hoarder {
  readonly #world: World
  readonly #draw: Seed
  /** Its sessions are in a database of their own: nothing of it is anything to the agent that is simulated. */
  readonly #database: Database
  #session: SessionTable
  #jobs = 0
  /** Jobs of the session that were filled, and the revision of its state that was looked at last. */
  #filled = 0
  #measured = 0
  /** Whether its jobs end, so that it is the reports on them that grow. */
  #ends: boolean

  constructor(world: World) {
    this.#world = world
    this.#draw = world.draw("hoarder")
    this.#database = new Database(this.#draw, world.faults)
    this.#session = this.#database.create()
    this.#ends = this.#draw.chance(0.5)
  }

  /** Sends one heartbeat. C2, C3: what a state holds of it has a limit, whatever is sent. */
  second(): void {
    const { epoch, session_id } = this.#session
    const caller = { session_id, agent_id: AGENT, epoch, standing: "current" } as const
    const { action } = this.#database.append(caller, this.#heartbeat())
    const { cores, reports } = this.#session.state
    if (cores.size > CORE_JOBS_MAX) throw new Violation("C2", `a session has ${cores.size} running jobs`)
    if (reports.length > REPORTS_OWED_MAX) throw new Violation("C2", `a session owes ${reports.length} reports`)
    this.#measure()
    if (action !== "OK") this.#begin(action)
  }

  #measure(): void {
    const { snapshot } = this.#session
    if (snapshot === undefined || snapshot.rev === this.#measured) return
    this.#measured = snapshot.rev
    const bytes = Buffer.byteLength(JSON.stringify(snapshot.state))
    if (bytes > SNAPSHOT_BYTES_MAX) throw new Violation("C3", `the state of a session has ${bytes} bytes`)
  }

  #begin(action: string): void {
    this.#world.note(
      `a history that grows ends at ${this.#session.events.length}: ${this.#session.frozen_reason ?? action}`
    )
    this.#session = this.#database.create()
    this.#ends = !this.#ends
    this.#filled = 0
    this.#measured = 0
  }

  #drafts(): ReadonlyArray<EventDraft> {
    const running = [...this.#session.state.cores.keys()]
    const unfilled = running.slice(this.#filled, this.#filled + JOBS_FILLED)
    if (running.length >= JOBS_FILLED_FROM && unfilled.length > 0) {
      this.#filled += unfilled.length
      return unfilled.map(filled)
    }
    const names = Array.from({ length: this.#draw.between(1, JOBS_MAX) }, () => `j${++this.#jobs}`)
    const jobs = names.flatMap((name) =>
      this.#ends ? [started(name), stopped(name, { outcome: "cancelled" })] : [started(name)]
    )
    return this.#session.events.length === 0 ? [message, ...jobs] : jobs
  }

  #heartbeat() {
    const { epoch, events, hash } = this.#session
    const base_rev = events.length
    const patches = this.#drafts().map((draft, index): ChoirEvent => {
      const rev = base_rev + 1 + index
      const created_at = new Date(rev * 1000).toISOString()
      return { v: EVENT_VERSION, rev, ...draft, created_at, salt: rev.toString(16).padStart(SALT_HEX, "0") }
    })
    const hash_new = patches.reduce((last: Uint8Array, event) => chainEvent(last, event).hash, hash)
    const new_rev = base_rev + patches.length
    const timestamp = new Date(this.#world.kernel.now).toISOString()
    const chain = { base_rev, new_rev, hash_prev: hex(hash), hash_new: hex(hash_new), patches }
    return { epoch, config_version: 1, timestamp, ...chain }
  }
}
