/** Everything that must hold, and where it is looked at. A breach throws a Violation, which ends the simulation. */
import { Cause } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { AgentIdentity, Probe } from "./Agent.ts"
import { AgentChecks } from "./AgentChecks.ts"
import type { Asked } from "./asked.ts"
import { Attempts } from "./Attempts.ts"
import type { ApprovalRow } from "./ApprovalTable.ts"
import type { SessionTable, StoredRow } from "./Database.ts"
import { type Process, Violation } from "./Kernel.ts"
import type { Run } from "./Ledger.ts"
import type { Container } from "./Machine.ts"
import { CANARY } from "./Setup.ts"
import { type Acknowledgement, type Head, StoreChecks } from "./StoreChecks.ts"
import type { World } from "./World.ts"

/** How long a choird may take to see that it has lost the database, in seconds: it asks every few of them. */
const DISPLACED_S_MAX = 20

export class Invariants {
  readonly #world: World
  readonly #store: StoreChecks
  readonly attempts: Attempts
  readonly #agents = new Map<number, AgentChecks>()
  readonly #byProcess = new Map<Process, AgentChecks>()
  /** Agents that the host took for dead too early; the fence has to hold against them. */
  readonly #zombies = new Set<number>()
  /** Calls with an effect that ran, and the newest epoch that ran them. */
  readonly #started = new Map<string, number>()
  readonly #happened = new Set<string>()
  /** Hears of each commit of an agent. */
  onCommitted: (events: ReadonlyArray<ChoirEvent>) => void = () => undefined
  /** The choird that serves. */
  choird: () => Process | undefined = () => undefined
  #newest: Container | undefined
  #displaced_s = 0

  constructor(world: World) {
    this.#world = world
    this.#store = new StoreChecks(world)
    this.attempts = new Attempts(world.kernel)
  }

  // choird

  stored(session: SessionTable, rows: ReadonlyArray<StoredRow>): void {
    this.#store.stored(session, rows)
  }
  answered(session: SessionTable, before: Head, new_rev: number, reply: Acknowledgement): void {
    this.#store.answered(session, before, new_rev, reply)
  }
  frozen(session: SessionTable, reason: string): void {
    throw new Violation("I2", `choird froze ${session.session_id}: ${reason}`)
  }
  /** N1: no epoch is lost to a single message that got lost or came late. */
  needless(what: string): void {
    throw new Violation("N1", what)
  }
  /** I12: an approved proposal that never ends keeps all later ones from being carried out. */
  stuck({ approval_id }: ApprovalRow): void {
    throw new Violation("I12", `approval ${approval_id} does not end, and nothing behind it is carried out`)
  }
  /** D1: once another choird has taken the database, this one commits nothing. */
  wrote(process: Process): void {
    const { owner } = this.#world.locks
    if (owner !== undefined && owner !== process)
      throw new Violation("D1", `${process.name} writes though ${owner.name} has taken the database`)
  }
  /** D1: and it ends. */
  #displaced(): void {
    const { database, kernel, locks } = this.#world
    const { owner } = locks
    const process = this.choird()
    if (owner === undefined || process === undefined || owner === process) {
      this.#displaced_s = 0
      return
    }
    // While it stands still, or the server is away, it cannot see that.
    if (process.frozen_until > kernel.now || database.isAway(kernel.now)) return
    if (++this.#displaced_s > DISPLACED_S_MAX)
      throw new Violation("D1", `${process.name} runs on though ${owner.name} took the database`)
  }
  resumed(session: SessionTable): void {
    this.#world.note(`${session.session_id} is resumed in epoch ${session.epoch}`)
  }
  undecodable(path: string, problem: string): void {
    throw new Violation("W1", `choird cannot read what the agent sent to ${path}: ${problem}`)
  }
  broke(program: string, cause: Cause.Cause<unknown>): void {
    if (!Cause.hasInterruptsOnly(cause)) throw new Violation("W2", `${program} broke: ${Cause.pretty(cause)}`)
  }
  /** An agent may be fenced and refused, but neither may it break nor may choird have less than it acknowledged. */
  agentFailed({ number }: AgentIdentity, cause: Cause.Cause<unknown>): void {
    const text = Cause.pretty(cause)
    if (
      cause.reasons.some(Cause.isDieReason) ||
      text.includes("choird lost events") ||
      text.includes("stored log differs")
    )
      throw new Violation("W2", `agent ${number} broke: ${text}`)
  }
  choirdDied(): void {
    this.#store.excuse()
  }
  unmarked(): void {
    this.#store.excuse()
  }
  delivered(source_id: string, unheard: boolean): void {
    if (unheard) this.#store.excuse()
    this.#store.delivered(source_id)
  }

  // the host

  /** R8: a new start only when nothing of the earlier ones is left. */
  launched(container: Container, all: ReadonlyArray<Container>): void {
    const left = all.find(
      (other) => other !== container && other.exit_code === undefined && !this.#zombies.has(other.number)
    )
    if (left !== undefined) throw new Violation("I6", `agent ${container.number} starts beside agent ${left.number}`)
    this.#newest = container
  }
  zombie(container: Container): void {
    this.#zombies.add(container.number)
  }
  /** I17: after the end of its program nothing of it is left. */
  left({ number, process }: Container): void {
    if (!process.alive) return
    const { kernel, ledger } = this.#world
    const running = ledger.running.get(number)?.size ?? 0
    if (process.timers + process.tasks + running > 0 && process.frozen_until + 2000 < kernel.now)
      throw new Violation(
        "I17",
        `${process.timers} timers, ${process.tasks} tasks and ${running} tools of agent ${number} are left`
      )
    kernel.kill(process)
    const checks = this.#agents.get(number)
    if (checks !== undefined) checks.ended = true
  }

  // the agent

  recovered(probe: Probe): void {
    const { agent } = probe
    const session = this.#world.database.sessions.get(agent.session_id)
    const checks = new AgentChecks(this.#world, probe)
    this.#agents.set(agent.number, checks)
    this.#byProcess.set(probe.process, checks)
    if (session?.epoch === agent.epoch && probe.log.head() !== session.events.length)
      throw new Violation(
        "I3",
        `agent ${agent.number} recovered ${probe.log.head()} of ${session.events.length} events`
      )
    checks.same()
  }
  committed({ agent, process }: Probe, events: ReadonlyArray<ChoirEvent>): void {
    for (const { event_type, lane, rev } of events)
      this.#world.note(`agent${agent.number} commits ${rev} ${event_type} ${lane}`)
    this.#agents.get(agent.number)?.committed(events)
    this.attempts.committed(process, events)
    this.onCommitted(events)
  }
  /** I13: what a model call is made of belongs to one version of the configuration. */
  asked({ max_tokens, temperature }: Asked, body: string): void {
    if (temperature !== undefined && Math.round(temperature * 1000) !== max_tokens - 200)
      throw new Violation("I13", `a model call mixes versions: ${temperature} and ${max_tokens}`)
    if (body.includes(CANARY)) throw new Violation("I14", "a prompt holds a secret")
  }
  /** W4: an agent never asks a model what a strict provider refuses. */
  refused(problem: string): void {
    throw new Violation("W4", `a provider refuses what the agent asks: ${problem}`)
  }
  logged(line: string): void {
    if (line.includes(CANARY)) throw new Violation("I14", `a log line holds a secret: ${line}`)
  }
  /** After each step of a process. */
  step(process: Process): void {
    const checks = this.#byProcess.get(process)
    if (checks !== undefined) checks.step()
  }

  // tools

  toolStarts(run: Run): void {
    const { agent, call_id, effect, epoch, tool } = run
    if (effect !== "none") {
      const before = this.#started.get(call_id)
      const intent = this.#store.intents.get(call_id) ?? epoch
      // What is local may run again when a crash took the very commit that it was to run (D3); then choird knows of none before.
      if (before !== undefined && (effect === "external" || before === epoch || intent < epoch))
        throw new Violation("I4", `${tool} ${call_id} runs again`)
      this.#started.set(call_id, epoch)
    }
    if (effect === "external" && !this.#store.intents.has(call_id))
      throw new Violation("I5", `${tool} ${call_id} runs before choird knows of it`)
    this.#world.database.approvals.starts(call_id)
    if (agent !== this.#newest?.number && !this.#zombies.has(agent))
      throw new Violation(
        "I6",
        `agent ${agent} of epoch ${epoch} runs ${tool} while agent ${this.#newest?.number} lives`
      )
    this.#agents.get(agent)?.toolStarts(run)
  }
  toolActs({ call_id, effect, tool }: Run): void {
    this.#world.kernel.digest.text(call_id)
    if (effect !== "external") return
    if (this.#happened.has(call_id)) throw new Violation("I4", `${tool} ${call_id} took effect twice`)
    this.#happened.add(call_id)
  }

  // time

  second(): void {
    this.#store.second()
    this.#displaced()
    for (const checks of this.#agents.values()) if (checks.probe.process.alive) checks.second()
    if (this.#world.kernel.seconds() % 10 === 0)
      for (const checks of this.#agents.values()) if (checks.probe.process.alive) checks.same()
  }
  end(): void {
    this.#store.end()
  }
  isSettled(): boolean {
    return this.#store.unsettled() === undefined
  }
  settled(): void {
    const waiting = this.#world.database.approvals.waiting().length
    if (waiting > 0) throw new Violation("I12", `${waiting} approvals still wait`)
    const open = this.#world.database.approvals.provable().length
    if (open > 0) throw new Violation("I12", `${open} approved proposals are not carried out`)
    this.#store.settled()
  }
}
