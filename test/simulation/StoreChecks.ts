/** What must hold of everything that choird stored and delivered: I1, I2, I6, I9 to I11, I14 and I15. */
import { Result } from "effect"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { chainedText, genesis, nextDigest } from "#src/shared/events/hashChain.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { AnswerRules } from "./AnswerRules.ts"
import { dmOf, type SessionTable, type StoredRow } from "./Database.ts"
import { isAskedAgain } from "./emptyReply.ts"
import { fingerprint } from "./fingerprint.ts"
import { JobRules } from "./JobRules.ts"
import { Violation } from "./Kernel.ts"
import { CANARY, CONTEXT_TOKENS } from "./Setup.ts"
import { OrphanRules } from "./OrphanRules.ts"
import { SkillRules } from "./SkillRules.ts"
import type { World } from "./World.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

/** Where a session's log stood. */
export interface Head {
  readonly rev: number
  readonly hash: Buffer
}

/** What a heartbeat was answered. */
export interface Acknowledgement {
  readonly action: string
  readonly ack_rev: number
}

/** Whether the newest end of a turn without an order of its own follows the stop of the turn that ran, before any other message. */
const closesParked = (events: ReadonlyArray<ChoirEvent>): boolean => {
  const stop = events.findLastIndex(
    ({ event_type, payload }) =>
      event_type === "Cancelled" && "turn" in payload && (payload.turn ?? 0) > 0 && payload.signal_id !== undefined
  )
  return stop >= 0 && events.slice(stop).every(({ event_type }) => event_type !== "UserMsg")
}

export class StoreChecks {
  readonly #world: World
  readonly #rules = new Map<string, JobRules>()
  readonly #skills = new Map<string, SkillRules>()
  readonly #orphans = new Map<string, OrphanRules>()
  readonly #answers = new Map<string, AnswerRules>()
  /** Calls whose intent choird has, with the epoch that it came from first. */
  readonly intents = new Map<string, number>()
  readonly #answered = new Set<string>()
  /** The newest revision that was ever acknowledged of a session, and the digests that its log had when they were stored. */
  readonly #acked = new Map<string, number>()
  readonly #digests = new Map<string, Array<Buffer>>()
  readonly #delivered: Array<string> = []
  /** Messages that a session left to the next one, which has not taken them yet. */
  readonly #carried = new Set<string>()
  /** Summaries by session. */
  readonly #summaries = new Map<string, number>()
  #newest_message = 0
  #spoken = 0
  readonly #signals = new Set<string>()
  readonly #stops = new Map<string, number>()
  readonly #reports = new Map<string, number>()
  /** The messages in whose turns jobs of a name were begun, by session and name; undefined for one that nobody's message asked for. */
  readonly #askedJobs = new Map<string, Set<string | undefined>>()
  /** How often a delivery may have come twice: choird died, or did not hear or note that it was accepted. */
  #excused = 0

  constructor(world: World) {
    this.#world = world
  }

  excuse(): void {
    this.#excused++
  }

  stored(session: SessionTable, rows: ReadonlyArray<StoredRow>): void {
    const { kernel, note } = this.#world
    const { events, session_id } = session
    for (const [index, row] of rows.entries()) {
      const rev = events.length - rows.length + index + 1
      if (row.event.rev !== rev) throw new Violation("I1", `event ${row.event.rev} is stored in place ${rev}`)
      const previous = events[rev - 2]?.hash ?? genesis(session_id)
      if (!nextDigest(previous, rev, chainedText(row.event, row.payload)).equals(row.hash))
        throw new Violation("I2", `the digest of event ${rev} does not follow from its text and place`)
      if (row.epoch !== session.epoch)
        throw new Violation("I6", `epoch ${row.epoch} wrote event ${rev} while epoch ${session.epoch} lives`)
      if (row.canonical.includes(CANARY)) throw new Violation("I14", `event ${rev} holds a secret`)
      this.#digestsOf(session_id).push(row.hash)
      kernel.digest.text(row.canonical)
      note(`stored ${session_id} ${row.canonical.slice(0, 300)}`)
      this.#event(session, row.event)
    }
  }

  #skillsOf(session_id: string): SkillRules {
    const { setup } = this.#world
    const known =
      this.#skills.get(session_id) ?? new SkillRules(setup.skills, setup.config(1).budgets.skill_retry_budget)
    this.#skills.set(session_id, known)
    return known
  }

  #orphansOf(session_id: string): OrphanRules {
    const known = this.#orphans.get(session_id) ?? new OrphanRules()
    this.#orphans.set(session_id, known)
    return known
  }

  #answersOf(session_id: string): AnswerRules {
    const { faults, setup } = this.#world
    const known = this.#answers.get(session_id) ?? new AnswerRules(setup.config(1), !faults.kinds.has("clock"))
    this.#answers.set(session_id, known)
    return known
  }

  #digestsOf(session_id: string): Array<Buffer> {
    const known = this.#digests.get(session_id) ?? []
    this.#digests.set(session_id, known)
    return known
  }

  /** R10: an acknowledgement says what is stored and never falls, and what was sent before changes nothing. */
  answered({ events, hash, session_id }: SessionTable, before: Head, new_rev: number, reply: Acknowledgement): void {
    const grown = events.length !== before.rev || !hash.equals(before.hash)
    if (grown && reply.action !== "OK") throw new Violation("A1", `${reply.action} is answered to what was stored`)
    if (reply.action !== "OK") return
    if (grown && new_rev <= before.rev) throw new Violation("A1", `a resend up to ${new_rev} changed the log`)
    if (reply.ack_rev !== events.length)
      throw new Violation("A1", `${reply.ack_rev} is acknowledged, and ${events.length} events are stored`)
    if (reply.ack_rev < (this.#acked.get(session_id) ?? 0))
      throw new Violation("A1", `the acknowledgement fell to ${reply.ack_rev}`)
    this.#acked.set(session_id, reply.ack_rev)
  }

  #event(session: SessionTable, event: ChoirEvent): void {
    const rules = this.#rulesOf(session)
    rules.event(event)
    this.#skillsOf(session.session_id).event(event)
    this.#orphansOf(session.session_id).event(event)
    this.#answersOf(session.session_id).event(event, session.epoch)
    switch (event.event_type) {
      case "UserMsg": {
        const id = Number(event.payload.inbox_id)
        const row = this.#world.database.inbox[id - 1]
        const isCarried = this.#carried.delete(event.payload.inbox_id)
        if (isCarried !== (event.payload.carried === true))
          throw new Violation("I10", `message ${id} was taken again, but no session left it to the next one`)
        if (!isCarried && id !== this.#newest_message + 1)
          throw new Violation("I10", `message ${id} is stored after message ${this.#newest_message}`)
        // What no event can hold is told to its sender, and stands in the log without its words.
        const isUnfit = Buffer.byteLength(JSON.stringify(row?.text ?? "")) > EVENT_BYTES_MAX
        if (row?.text !== event.payload.text && !isUnfit)
          throw new Violation("I10", `message ${id} is not what was sent`)
        this.#newest_message = Math.max(id, this.#newest_message)
        return
      }
      case "ToolCallCommitted":
        if (!this.intents.has(event.payload.call_id)) this.intents.set(event.payload.call_id, session.epoch)
        return
      case "CoreStarted": {
        const core = session.state.cores.get(event.payload.job_name)
        // The state is that after all events of the append, in which a later job may have the name of this one.
        const inbox_id = core?.job_id === event.payload.job_id ? core.inbox_id : undefined
        const key = `${session.session_id} ${event.payload.job_name}`
        this.#askedJobs.set(key, (this.#askedJobs.get(key) ?? new Set()).add(inbox_id))
        return
      }
      case "CoreStopped":
        return count(this.#stops, session.session_id)
      case "AgentMessage": {
        this.#spoken++
        const { in_reply_to = "", kind } = event.payload
        this.#place(session, event)
        if (kind === "report") count(this.#reports, session.session_id)
        if (kind !== "reply") return
        if (this.#answered.has(in_reply_to)) throw new Violation("I11", `message ${in_reply_to} got two replies`)
        this.#answered.add(in_reply_to)
        return
      }
      case "ModelOutput":
        if (event.payload.purpose === "summary") count(this.#summaries, session.session_id)
        return
      case "Cancelled":
        if (event.payload.carried !== undefined) this.#carried.add(event.payload.carried)
        this.#stopped(session, event)
        return this.#signal(session, event.payload.signal_id)
      case "InjectedInstruction":
      case "CompactionCommitted":
        return this.#signal(session, event.payload.signal_id)
      default:
        return
    }
  }

  /** N2: what is told of a job goes to the person who asked for it. */
  #place({ session_id }: SessionTable, { payload, rev }: EventOf<"AgentMessage">): void {
    if (payload.job === undefined) return
    // The report on a job may come once a later one has its name.
    const asked = this.#askedJobs.get(`${session_id} ${payload.job}`)
    const told = this.#world.database.outbox.find(({ source_id }) => source_id === `${session_id}:${rev}`)
    if (asked === undefined || told === undefined || asked.has(undefined)) return
    const dms = new Set([...asked].map((inbox_id) => dmOf(inbox_id ?? "")))
    if (!dms.has(told.dm))
      throw new Violation("N2", `a line on the job ${payload.job} of ${[...dms].join(" and ")} goes to ${told.dm}`)
  }

  /** T2: an order ends the turn that it names, and no other. */
  #stopped({ events, session_id }: SessionTable, { payload, rev }: EventOf<"Cancelled">): void {
    const { signal_id, turn = 0 } = payload
    const log = events.slice(0, rev - 1).map(({ event }) => event)
    if (turn === 0) return this.#unheard(log, signal_id)
    if (signal_id === undefined && closesParked(events.slice(0, rev).map(({ event }) => event))) return
    const order = this.#world.database.signals.find((row) => row.signal_id === signal_id)
    const named = order?.says.type === "StopTurn" ? order.says.turn : undefined
    const about = events[turn - 1]?.event
    const isNamed =
      named !== undefined &&
      ("report_rev" in named
        ? named.report_rev === turn
        : about?.event_type === "UserMsg" && about.payload.inbox_id === named.inbox_id)
    if (!isNamed || order?.session_id !== session_id)
      throw new Violation("T2", `signal ${signal_id} ended the turn about ${turn}, which it does not name`)
  }

  /** T2: an order finds no turn only where the turn that it names has its answer. */
  #unheard(log: ReadonlyArray<ChoirEvent>, signal_id: string | undefined): void {
    const order = this.#world.database.signals.find((row) => row.signal_id === signal_id)
    const named =
      order?.says.type === "StopTurn" && "inbox_id" in order.says.turn ? order.says.turn.inbox_id : undefined
    const from = log.findLastIndex(
      ({ event_type, payload }) =>
        event_type === "UserMsg" || (event_type === "AgentMessage" && "kind" in payload && payload.kind !== "notice")
    )
    const begun = log[from]
    const isOpen = begun?.event_type === "UserMsg" && begun.payload.inbox_id === named
    if (isOpen && isAskedAgain(log, from))
      throw new Violation("T2", `signal ${signal_id} found no turn while the model was asked again`)
  }

  #signal({ session_id }: SessionTable, signal_id: string | undefined): void {
    if (signal_id === undefined) return
    const key = `${session_id} ${signal_id}`
    if (this.#signals.has(key)) throw new Violation("S1", `signal ${signal_id} ended in two events`)
    this.#signals.add(key)
  }

  #rulesOf(session: SessionTable): JobRules {
    const known = this.#rules.get(session.session_id)
    if (known !== undefined) return known
    const rules = new JobRules(this.#world.setup.config(1))
    this.#rules.set(session.session_id, rules)
    return rules
  }

  delivered(source_id: string): void {
    const { database, kernel } = this.#world
    kernel.digest.text(source_id)
    const place = database.outbox.findIndex((row) => row.source_id === source_id)
    if (place < 0) throw new Violation("I11", `${source_id} was delivered but is no message`)
    const before = this.#delivered.at(-1)
    const last = before === undefined ? -1 : database.outbox.findIndex((row) => row.source_id === before)
    if (place !== last && place !== last + 1)
      throw new Violation("I11", `message ${place} of the outbox was delivered after message ${last}`)
    this.#delivered.push(source_id)
    const twice = this.#delivered.length - new Set(this.#delivered).size
    if (twice > this.#excused)
      throw new Violation("I11", `${twice} messages came twice, ${this.#excused} with an excuse`)
  }

  /** Each virtual second. */
  second(): void {
    const { database, faults, setup } = this.#world
    if (database.outbox.length !== this.#spoken)
      throw new Violation(
        "I11",
        `${this.#spoken} messages are stored and ${database.outbox.length} are to be delivered`
      )
    for (const session of database.sessions.values()) {
      this.#unchanged(session)
      const rules = this.#rulesOf(session)
      const { spent } = session.state
      if (spent.tokens !== rules.tokens)
        throw new Violation("I9", `the state counts ${spent.tokens} tokens, the events hold ${rules.tokens}`)
      for (const core of session.state.cores.values()) rules.same(core)
      const stops = this.#stops.get(session.session_id) ?? 0
      const told = (this.#reports.get(session.session_id) ?? 0) + session.state.reports.length
      if (told < stops) throw new Violation("R1", `${stops} jobs ended, and ${told} reports were made or are owed`)
      // R24: the message of a turn that a limit ended has its reply, or is left to the next session.
      if (session.state.ended !== undefined && session.state.edge.turn?.kind === "turn")
        throw new Violation("I10", `the session ended, and nobody answers message ${session.state.edge.turn.inbox_id}`)
      const { max_core_jobs, total_session_tokens } = setup.config(1).budgets
      // With a provider that counts honestly and writes no more than it is asked for, reservations leave room for no more than the last call (D28); else R23 holds.
      const isHonest =
        !faults.kinds.has("hostile-model") && !faults.kinds.has("answers") && rules.largest <= CONTEXT_TOKENS
      // An answer that broke off is paid for along with the attempt after it, and the reservations of two calls at once were for one attempt each.
      const isBroken = faults.kinds.has("loss") || faults.kinds.has("cut")
      // The price of a summary is not a part of the limit.
      const summed_up = this.#summaries.get(session.session_id) ?? 0
      const calls = summed_up + (isHonest ? (isBroken ? 2 : 1) : max_core_jobs + 1)
      if (spent.tokens > total_session_tokens + calls * (rules.largest + 500))
        throw new Violation(
          "I9",
          `${spent.tokens} tokens were spent, of ${total_session_tokens}; the largest call had ${rules.largest}`
        )
    }
    for (const message of database.inbox)
      if (message.acked_rev !== undefined && Number(message.inbox_id) > this.#newest_message)
        throw new Violation("I10", `message ${message.inbox_id} counts as taken, but no event holds it`)
  }

  /** R10: what was stored stays as it was stored. */
  #unchanged({ events, session_id }: SessionTable): void {
    const digests = this.#digestsOf(session_id)
    const changed = events.findIndex(({ hash }, index) => hash !== digests[index])
    if (changed >= 0 || events.length !== digests.length)
      throw new Violation("A1", `event ${changed + 1} of ${session_id} is not the one that was stored there`)
  }

  /** At the end: the whole log again, from its texts. */
  end(): void {
    for (const { events, session_id, state } of this.#world.database.sessions.values()) {
      const parsed = events.map(({ canonical }) => JSON.parse(canonical) as ChoirEvent)
      const folded = foldAll(initialState, parsed)
      if (Result.isFailure(folded)) throw new Violation("I15", `${session_id}: ${folded.failure.reason}`)
      if (fingerprint(folded.success) !== fingerprint(state))
        throw new Violation("I15", `${session_id}: the fold of the whole log differs from the state that grew with it`)
    }
  }

  /** What still waits; nothing once everybody was answered and told. */
  unsettled(): string | undefined {
    const { database } = this.#world
    for (const { acked_rev, inbox_id } of database.inbox) {
      if (acked_rev === undefined) return `message ${inbox_id} was never taken`
      if (!this.#answered.has(inbox_id)) return `message ${inbox_id} has no reply`
    }
    const waiting = database.outbox.find(({ delivered }) => !delivered)
    if (waiting !== undefined) return `message ${waiting.source_id} was never delivered`
    const session = database.latest()
    if (session === undefined || session.status === "closed") return undefined
    const { cores, edge, reports } = session.state
    if (session.status !== "active") return `the session is ${session.status}`
    if (edge.state !== "EDGE_IDLE") return `edge is ${edge.state}`
    if (cores.size > 0) return `the jobs ${[...cores.keys()].join(", ")} still run`
    if (reports.length > 0) return `${reports.length} reports were never made`
    const signal = database.signals.find((row) => row.session_id === session.session_id && row.acked_rev === undefined)
    return signal === undefined ? undefined : `signal ${signal.signal_id} ended in no event`
  }

  /** After a minute without faults: everybody was answered and told, and nothing waits. */
  settled(): void {
    const what = this.unsettled()
    if (what !== undefined) throw new Violation("L1", what)
  }
}

const count = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1)
