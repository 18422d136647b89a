/** What must hold inside a running agent: I3, I7, I8, I16, I17, and that jobs end when they have to. */
import { Effect } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, type JobName } from "#schema/Ids.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import type { Probe } from "./Agent.ts"
import { fingerprint } from "./fingerprint.ts"
import { Violation } from "./Kernel.ts"
import type { Run } from "./Ledger.ts"
import { ClockRules } from "./ClockRules.ts"
import { excludes, type Holding } from "./lockRules.ts"
import { SlotRules } from "./SlotRules.ts"
import { TurnRules } from "./TurnRules.ts"
import type { World } from "./World.ts"
import { TOOLS_IN_FLIGHT_MAX } from "#src/agent/control/choirdConnections.ts"
import { SEEN_FILES_MAX } from "#src/shared/session/calls.ts"

/** How long a call of edge or of a job may wait for its locks, in ms of a process that is not standing still (R19, E12). */
const EDGE_WAIT_MS = 5000
const CORE_WAIT_MS = 24_000

/** How long a job may take to end once it has to, in ms of a process that is not standing still. */
const ENDING_MS = 4000

export class AgentChecks {
  readonly #world: World
  readonly #probe: Probe
  readonly #restored: number
  /** Canonical texts of what this process committed, from the restored revision on. */
  readonly #texts: Array<string> = []
  #checked: number
  #waiting: ReadonlyArray<Holding> = []
  #stale: ReadonlySet<unknown> = new Set()
  /** Time that the process did not stand still, in ms, and when that was last counted. */
  #awake_ms = 0
  readonly #overdue = new Map<JobName, number>()
  readonly #since = new Map<unknown, number>()
  readonly #turns: TurnRules
  readonly #slots: SlotRules
  readonly #clocks: ClockRules
  ended = false

  constructor(world: World, probe: Probe) {
    this.#world = world
    this.#probe = probe
    this.#restored = probe.log.head()
    this.#checked = this.#restored
    this.#turns = new TurnRules(probe, () => this.#running())
    this.#slots = new SlotRules(probe, () => this.#running())
    this.#clocks = new ClockRules(world.kernel, probe)
  }

  get probe(): Probe {
    return this.#probe
  }

  committed(events: ReadonlyArray<ChoirEvent>): void {
    const { arbiter, agent } = this.#probe
    if (this.ended) throw new Violation("I17", `agent ${agent.number} commits after its end`)
    for (const event of events) this.#texts.push(canonicalJson(event))
    this.#turns.committed(events)
    this.#slots.committed(events)
    this.#clocks.committed(events)
    const { cores, edge } = arbiter.state()
    if (edge.state === "EDGE_TERMINATED" && cores.size > 0) throw new Violation("I8", "a job outlives edge")
    const spawned = events.some(({ event_type }) => event_type === "CoreStarted")
    const writing = [...this.#running()].find(({ effect, lane }) => lane === EDGE && effect !== "none")
    if (spawned && writing !== undefined)
      throw new Violation("I7", `a job starts while edge runs ${writing.tool} (D30)`)
  }

  #running() {
    return this.#world.ledger.running.get(this.#probe.agent.number) ?? new Set()
  }

  /** After each step of the agent: the table of locks is legal, and nobody was overtaken. */
  step(): void {
    const { locks } = this.#probe
    this.#turns.step()
    const waiting = Effect.runSync(locks.waiting)
    if (waiting.length === 0 && this.#waiting.length === 0) return
    const held = Effect.runSync(locks.held)
    const before = this.#waiting
    this.#waiting = waiting
    const idOf = ({ locks }: Holding) => locks[0]
    const place = new Map(before.map((claim, index) => [idOf(claim), index]))
    for (const claim of held) {
      const at = place.get(idOf(claim)) ?? Number.POSITIVE_INFINITY
      const passed = waiting.find((other) => {
        const there = place.get(idOf(other))
        return there !== undefined && there < at && excludes(claim, other)
      })
      // Whoever held its locks when the other came is ahead of it.
      if (passed !== undefined && (at < Number.POSITIVE_INFINITY || !this.#holders.has(idOf(claim))))
        throw new Violation("I7", `${claim.lane} overtook ${passed.lane} at ${JSON.stringify(passed.locks)}`)
    }
    this.#holders = new Set(held.map(idOf))
  }
  #holders: ReadonlySet<unknown> = new Set()

  /** A tool starts: nothing that it excludes runs beside it. */
  toolStarts(run: Run): void {
    this.#turns.toolStarts(run)
    const running = this.#running()
    if (running.size > TOOLS_IN_FLIGHT_MAX) throw new Violation("I16", `${running.size} tools run at once`)
    for (const other of running)
      if (other !== run && excludes(run, other))
        throw new Violation("I7", `${run.lane} runs ${run.tool} while ${other.lane} runs ${other.tool}`)
    if (run.lane === EDGE && run.effect !== "none" && this.#probe.arbiter.state().cores.size > 0)
      throw new Violation("I7", `edge runs ${run.tool} while jobs run (D30)`)
  }

  second(): void {
    this.#acknowledged()
    this.#leaks()
    this.#endings()
    this.#caps()
  }

  /** C1: what a lane remembers has a limit, however long the session is. */
  #caps(): void {
    const { cores, edge } = this.#probe.arbiter.state()
    for (const { seen } of [edge, ...cores.values()])
      if (seen.size > SEEN_FILES_MAX) throw new Violation("C1", `a lane remembers ${seen.size} files`)
  }

  /** I3: what the agent counts as acknowledged stands in the store, word for word. */
  #acknowledged(): void {
    const { agent, replication } = this.#probe
    const stored = this.#world.database.sessions.get(agent.session_id)?.events ?? []
    const acked = replication.acked()
    if (acked > stored.length) throw new Violation("I3", `${acked} counts as acknowledged, ${stored.length} are stored`)
    for (; this.#checked < acked; this.#checked++) {
      const text = this.#texts[this.#checked - this.#restored]
      if (text !== stored[this.#checked]?.canonical)
        throw new Violation("I3", `event ${this.#checked + 1} is stored with another content than was committed`)
    }
  }

  /** Locks that a lane without any open call still holds a second later were never let go of. */
  #leaks(): void {
    const { arbiter, locks } = this.#probe
    if (this.#world.kernel.now < this.#probe.process.frozen_until) return
    const { cores, edge } = arbiter.state()
    const busy = new Set([
      ...(edge.calls.length > 0 ? [EDGE] : []),
      ...[...cores.values()].filter(({ calls }) => calls.length > 0).map(({ lane }) => lane)
    ])
    const idle = Effect.runSync(locks.held).filter(({ lane }) => !busy.has(lane))
    const leaked = idle.find(({ locks }) => this.#stale.has(locks[0]))
    if (leaked !== undefined)
      throw new Violation("I7", `${leaked.lane} keeps ${JSON.stringify(leaked.locks)} without a call`)
    this.#stale = new Set(idle.map(({ locks }) => locks[0]))
  }

  /** Jobs that are cancelled or out of time end soon, unless the process stands still. */
  #endings(): void {
    const { arbiter, process, settings } = this.#probe
    const { now } = this.#world.kernel
    if (process.frozen_until + 1000 > now) return
    this.#awake_ms += 1000
    const { cores } = arbiter.state()
    for (const [name, core] of cores) {
      const out_of_time = this.#clocks.isOver(core.lane)
      if (core.cancelled === undefined && !out_of_time) continue
      const since = this.#overdue.get(name) ?? this.#awake_ms
      this.#overdue.set(name, since)
      if (this.#awake_ms - since > ENDING_MS)
        throw new Violation("J1", `the job ${name} does not end: ${core.cancelled ?? "it is out of time"}`)
    }
    this.#waits()
    // What an agent asks of choird within a tool takes up a slot that nobody sees here.
    if (!this.#world.setup.proposes) this.#slots.second()
    for (const name of this.#overdue.keys()) if (!cores.has(name)) this.#overdue.delete(name)
    const { max_core_jobs } = settings.current().config.budgets
    if (cores.size > max_core_jobs) throw new Violation("I16", `${cores.size} jobs run at once`)
  }

  #waits(): void {
    const waiting = Effect.runSync(this.#probe.locks.waiting)
    for (const { lane, locks } of waiting) {
      const since = this.#since.get(locks[0]) ?? this.#awake_ms
      this.#since.set(locks[0], since)
      if (this.#awake_ms - since > (lane === EDGE ? EDGE_WAIT_MS : CORE_WAIT_MS))
        throw new Violation("J3", `${lane} waits for ${JSON.stringify(locks)} beyond its time`)
    }
    const present = new Set<unknown>(waiting.map(({ locks }) => locks[0]))
    for (const claim of this.#since.keys()) if (!present.has(claim)) this.#since.delete(claim)
  }

  /** I15: agent and choird, which fold the same events by themselves, know the same. */
  same(): void {
    const { agent, arbiter, log } = this.#probe
    const session = this.#world.database.sessions.get(agent.session_id)
    if (session === undefined || session.epoch !== agent.epoch || log.head() !== session.events.length) return
    if (fingerprint(arbiter.state()) !== fingerprint(session.state))
      throw new Violation("I15", `agent ${agent.number} and choird disagree at ${log.head()}`)
  }
}
