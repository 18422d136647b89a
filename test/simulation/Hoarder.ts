/**
 * An agent that means harm, beside the others: each of its heartbeats is valid, chained and small, and its history never stops growing. choird's own
 * code decides about it and folds it. A session that choird freezes is followed by a new one.
 */
import { CORE_JOBS_MAX } from "#schema/Core.ts"
import { type ChoirEvent, EVENT_VERSION, type EventDraft } from "#schema/Event.ts"
import { AgentId, EDGE, InboxId, ResourceName } from "#schema/Ids.ts"
import { chainEvent, hex } from "#src/shared/events/hashChain.ts"
import { REPORTS_OWED_MAX } from "#src/shared/session/State.ts"
import { started, stopped } from "../support/jobEvents.ts"
import { Database, type SessionTable } from "./Database.ts"
import { Violation } from "./Kernel.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** Jobs of one heartbeat at most. */
const JOBS_MAX = 60
const AGENT = AgentId.make("hoarder")
const SALT_HEX = 32

const message: EventDraft = {
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id: InboxId.make("1"), dm: ResourceName.make("me"), text: "hi", attachments: [] }
}

export class Hoarder {
  readonly #world: World
  readonly #draw: Seed
  /** Its sessions are in a database of their own: nothing of it is anything to the agent that is simulated. */
  readonly #database: Database
  #session: SessionTable
  #jobs = 0
  /** Whether its jobs end, so that it is the reports on them that grow. */
  #ends: boolean

  constructor(world: World) {
    this.#world = world
    this.#draw = world.draw("hoarder")
    this.#database = new Database(this.#draw, world.faults)
    this.#session = this.#database.create()
    this.#ends = this.#draw.chance(0.5)
  }

  /** Sends one heartbeat. C2: what a state holds of it has a limit, whatever is sent. */
  second(): void {
    const { epoch, session_id } = this.#session
    const caller = { session_id, agent_id: AGENT, epoch, standing: "current" } as const
    const { action } = this.#database.append(caller, this.#heartbeat())
    const { cores, reports } = this.#session.state
    if (cores.size > CORE_JOBS_MAX) throw new Violation("C2", `a session has ${cores.size} running jobs`)
    if (reports.length > REPORTS_OWED_MAX) throw new Violation("C2", `a session owes ${reports.length} reports`)
    if (action !== "OK") this.#begin(action)
  }

  #begin(action: string): void {
    this.#world.note(
      `a history that grows ends at ${this.#session.events.length}: ${this.#session.frozen_reason ?? action}`
    )
    this.#session = this.#database.create()
    this.#ends = !this.#ends
  }

  #drafts(): ReadonlyArray<EventDraft> {
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
