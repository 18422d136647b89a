/**
 * Planted bugs, as text that takes the place of other text. Each has to be found within 200 seeds: one that survives shows a check
 * that is missing here, or one in the product that another makes redundant.
 */
import { ANSWER_MUTANTS } from "./answerMutants.ts"
import { APPROVAL_MUTANTS } from "./approvalMutants.ts"
import { CAP_MUTANTS } from "./capMutants.ts"
import { CLOCK_MUTANTS } from "./clockMutants.ts"
import type { Mutant } from "./Mutant.ts"
import { PROPOSAL_MUTANTS } from "./proposalMutants.ts"
import { REQUEST_MUTANTS } from "./requestMutants.ts"
import { SKILL_MUTANTS } from "./skillMutants.ts"
import { RIVAL_MUTANTS } from "./rivalMutants.ts"
import { SLOT_MUTANTS } from "./slotMutants.ts"
import { LABEL_MUTANTS } from "./labelMutants.ts"
import { MEMORY_MUTANTS } from "./memoryMutants.ts"
import { STOP_MUTANTS } from "./stopMutants.ts"
import type { Edit } from "./patchSources.ts"

const agent = (file: string) => `src/agent/${file}`
const session = (file: string) => `src/shared/session/${file}`
const choird = (file: string) => `src/choird/${file}`

/** The fold's own refusal of a second ToolCallCommitted stands behind the closing of calls in doubt. */
const RECOMMIT: Edit = {
  file: session("calls.ts"),
  find: `if (call.stage === "committed" && call.effect !== "none")`,
  replace: "if (false)"
}

export const MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "no-intent-barrier",
    file: agent("calls/grantedCall.ts"),
    find: "replication.reached(committed.rev)",
    replace: "Effect.void",
    knownSeed: 2,
    breaks: ["I5"]
  },
  {
    name: "barrier-waits-for-nothing",
    file: agent("control/Replication.ts"),
    find: "if (rev <= acked) return Effect.void",
    replace: "if (rev <= log.head()) return Effect.void",
    knownSeed: 2,
    breaks: ["I5"]
  },
  {
    name: "acknowledged-when-sent",
    file: agent("control/Replication.ts"),
    find: "acked = Math.max(acked, Math.min(rev, log.head()))",
    replace: "acked = log.head()",
    knownSeed: 2,
    breaks: ["I3", "I5"]
  },
  {
    name: "stored-twice",
    file: choird("sessions/decideAppend.ts"),
    find: "const fresh = links.slice(shared_rev - base_rev)",
    replace: "const fresh = links",
    knownSeed: 1,
    breaks: ["I1", "I2"]
  },
  {
    name: "epoch-not-checked-in-the-transaction",
    file: choird("sessions/decideAppend.ts"),
    find: `if (caller_epoch < session.epoch || heartbeat.epoch < session.epoch) return { type: "fenced" }`,
    replace: "",
    knownSeed: 98,
    breaks: ["I6", "I1", "I2"]
  },
  {
    name: "new-epoch-before-the-old-is-gone",
    file: choird("agents/Epoch.ts"),
    find: "  yield* Effect.raceFirst(container.kill, Effect.andThen(told, Effect.never))\n",
    replace: "",
    also: [
      {
        file: "test/simulation/Epochs.ts",
        find: "(container) => this.#killed(container)",
        replace: "() => Effect.void"
      }
    ],
    knownSeed: 1,
    breaks: ["I6"]
  },
  {
    name: "lock-queue-overtaken",
    file: agent("calls/locks.ts"),
    find: "excluded(claim, held) || excluded(claim, waiting)",
    replace: "excluded(claim, held)",
    knownSeed: 3,
    breaks: ["I7"]
  },
  {
    name: "folder-lock-ignores-what-is-in-it",
    file: agent("calls/locks.ts"),
    find: `return outer === "" || (inner.charCodeAt(outer.length) === SLASH && inner.startsWith(outer))`,
    replace: `return outer === ""`,
    knownSeed: 2,
    breaks: ["I7"]
  },
  {
    name: "readers-exclude-nobody",
    file: agent("calls/locks.ts"),
    find: "(x.exclusive || y.exclusive) &&",
    replace: "(x.exclusive && y.exclusive) &&",
    knownSeed: 2,
    breaks: ["I7"]
  },
  {
    name: "lock-kept-on-defect",
    file: agent("calls/LockManager.ts"),
    find: "Effect.ensuring(Effect.sync(() => apply(release(table, ticket))))",
    replace: "Effect.tap(() => Effect.sync(() => apply(release(table, ticket))))",
    knownSeed: 2,
    breaks: ["I7"]
  },
  {
    name: "lock-waiter-stays",
    file: agent("calls/LockManager.ts"),
    find: "if (table.waiting.includes(ticket)) Deferred",
    replace: "if (table.waiting.includes(ticket) && wait_ms < 0) Deferred",
    knownSeed: 3,
    breaks: ["J3", "L1"]
  },
  {
    name: "tools-unbounded",
    file: agent("calls/ToolSlots.ts"),
    find: "const isFree = mayRun(turn)",
    replace: "const isFree = true",
    knownSeed: 13,
    breaks: ["I16"]
  },
  {
    name: "result-committed-twice",
    file: session("calls.ts"),
    find: "const calls = memory.calls.filter((other) => other !== call)",
    replace: "const calls = memory.calls",
    knownSeed: 2,
    breaks: ["L1", "L2"]
  },
  {
    name: "call-runs-again-after-crash",
    file: agent("calls/inDoubt.ts"),
    find: `.filter(({ effect, stage }) => stage === "committed" && effect !== "none")`,
    replace: `.filter(({ effect, stage }) => stage === "committed" && effect === "external")`,
    also: [RECOMMIT],
    knownSeed: 7,
    breaks: ["I4", "L1", "L2"]
  },
  {
    name: "in-doubt-not-closed",
    file: agent("session/Session.ts"),
    find: "  yield* runner.closeInDoubt\n",
    replace: "",
    also: [RECOMMIT],
    knownSeed: 10,
    breaks: ["I4", "L1", "L2"]
  },
  {
    name: "edge-writes-while-jobs-run",
    file: agent("arbiter/decideCalls.ts"),
    find: '  lane === EDGE && effect !== "none" && !beside_jobs && cores.size > 0\n',
    replace: "  false\n",
    knownSeed: 2,
    breaks: ["I7"]
  },
  {
    name: "spawn-does-not-wait-for-writes",
    file: agent("arbiter/decideCores.ts"),
    find: `call.stage === "committed" && call.effect !== "none"`,
    replace: `call.stage === "committed" && call.effect === "none"`,
    knownSeed: 11,
    breaks: ["I7"]
  },
  {
    name: "jobs-unlimited",
    file: agent("arbiter/decideCores.ts"),
    find: "if (state.cores.size >= budgets.max_core_jobs)",
    replace: "if (state.cores.size > budgets.max_core_jobs)",
    knownSeed: 11,
    breaks: ["I9", "I16"]
  },
  {
    name: "message-dropped",
    file: agent("session/Mailbox.ts"),
    find: "waiting.push(message)",
    replace: "if (waiting.length === 0) waiting.push(message)",
    knownSeed: 3,
    breaks: ["I10", "L1"]
  },
  {
    name: "messages-out-of-order",
    file: agent("session/Mailbox.ts"),
    find: "waiting.shift()",
    replace: "waiting.pop()",
    knownSeed: 2,
    breaks: ["I10"]
  },
  {
    name: "message-acknowledged-too-early",
    file: "test/simulation/Database.ts",
    find: "message.session_id = session_id\n      this.#signal(",
    replace: "message.session_id = session_id\n      message.acked_rev = 0\n      this.#signal(",
    knownSeed: 1,
    breaks: ["I10"]
  },
  {
    name: "resent-acknowledges-less",
    file: "test/simulation/Database.ts",
    find: `return { action: "OK", ack_rev: last_rev }`,
    replace: `return { action: "OK", ack_rev: base_rev }`,
    knownSeed: 3,
    breaks: ["A1"]
  },
  {
    name: "report-not-owed",
    file: session("fold.ts"),
    find: `report.job_id !== job_id || report.rev`,
    replace: `report.job_id === job_id || report.rev`,
    knownSeed: 2,
    breaks: ["R1"]
  },
  {
    name: "outbox-outside-of-the-transaction",
    file: "test/simulation/Database.ts",
    find: "this.outbox.push({ source_id:",
    replace: "if (this.latency_ms() === 1) this.outbox.push({ source_id:",
    knownSeed: 1,
    breaks: ["I11"]
  },
  {
    name: "budget-reset-by-instructions",
    file: session("fold.ts"),
    find: "injections: core.injections + 1,",
    replace: "step: 0, tool_calls: 0, injections: core.injections + 1,",
    knownSeed: 10,
    breaks: ["I9"]
  },
  {
    name: "compaction-not-counted",
    file: session("calls.ts"),
    find: `if (payload.purpose !== "turn" && payload.purpose !== "report") return Result.succeed(counted)`,
    replace: `if (payload.purpose !== "turn" && payload.purpose !== "report") return Result.succeed(state)`,
    knownSeed: 2,
    breaks: ["I9"]
  },
  {
    name: "reservation-ignored",
    file: agent("model/Budget.ts"),
    find: "running.add(taken)",
    replace: "running.delete(taken)",
    knownSeed: 327,
    breaks: ["I9"]
  },
  {
    name: "reservation-kept",
    file: agent("model/Budget.ts"),
    find: "running.delete(most)",
    replace: "running.has(most)",
    knownSeed: 3,
    breaks: ["L1"]
  },
  {
    name: "steps-not-limited",
    file: agent("session/CoreJob.ts"),
    find: "core.step >= core.budgets.max_steps",
    replace: "core.step > core.budgets.max_steps",
    knownSeed: 7,
    breaks: ["I9"]
  },
  {
    name: "turn-not-limited",
    file: agent("session/EdgeLane.ts"),
    find: "if (edge.step >= turn_max_steps)",
    replace: "if (edge.step > turn_max_steps)",
    knownSeed: 14,
    breaks: ["I9"]
  },
  {
    name: "wall-time-ignored",
    file: agent("session/CoreJob.ts"),
    find: "job_ms >= budgets.wall_time_ms",
    replace: "job_ms < 0",
    knownSeed: 11,
    breaks: ["J1"]
  },
  {
    name: "repetition-not-counted",
    file: session("repetitions.ts"),
    find: "times: before.times + 1",
    replace: "times: before.times",
    knownSeed: 31,
    breaks: ["I9"]
  },
  {
    name: "constraint-ignored",
    file: agent("arbiter/decideCalls.ts"),
    find: "if (allowed_tools !== undefined && !allowed_tools.includes(tool))",
    replace: "if (false)",
    knownSeed: 10,
    breaks: ["J2"]
  },
  {
    name: "cancel-ignored",
    file: agent("session/CoreJob.ts"),
    find: `if (core.cancelled !== undefined) return stop("cancelled", core.cancelled)`,
    replace: "",
    knownSeed: 2,
    breaks: ["J1"]
  },
  {
    name: "cancel-leaves-the-fiber",
    file: agent("session/laneFibers.ts"),
    find: "        yield* FiberMap.remove(jobs, core.job_id)\n",
    replace: "",
    knownSeed: 2,
    breaks: ["J1"]
  },
  {
    name: "jobs-outlive-edge",
    file: agent("session/laneFibers.ts"),
    find: "Effect.andThen(Fiber.interrupt(supervisor), interruptJobs(jobs))",
    replace: "Fiber.interrupt(supervisor)",
    knownSeed: 11,
    breaks: ["I7", "I8", "I17", "J1", "L1"]
  },
  {
    name: "key-in-the-error",
    file: agent("settings/scrub.ts"),
    find: "(text) => forms.reduce((left, form) => left.replaceAll(form, REDACTED), text)",
    replace: "(text) => text",
    knownSeed: 5,
    breaks: ["I14"]
  },
  {
    name: "trimmed-before-acknowledged",
    file: agent("control/Replication.ts"),
    find: "log.trim(acknowledged.newest(), residentRevs(arbiter.state(), log))",
    replace: "log.trim(log.head(), residentRevs(arbiter.state(), log))",
    knownSeed: 46,
    breaks: ["L1", "W2"]
  },
  {
    name: "taint-is-lost",
    file: session("calls.ts"),
    find: "const after = isForeign ? brought(",
    replace: "const after = isForeign && memory.tainted ? brought(",
    knownSeed: 2,
    breaks: ["J4"]
  },
  {
    name: "instructions-unlimited",
    file: agent("arbiter/decideCores.ts"),
    find: "if (core.injections >= core.budgets.max_injections)",
    replace: "if (core.injections > core.budgets.max_injections)",
    knownSeed: 98,
    breaks: ["I9"]
  },
  {
    name: "tool-calls-unlimited",
    file: agent("arbiter/decideCalls.ts"),
    find: "core.tool_calls >= core.budgets.max_tool_calls",
    replace: "core.tool_calls > core.budgets.max_tool_calls",
    knownSeed: 11,
    breaks: ["I9"]
  },
  {
    name: "session-calls-unlimited",
    file: agent("arbiter/decideCalls.ts"),
    find: "spent.tool_calls >= budgets.max_tool_calls_per_session",
    replace: "spent.tool_calls > budgets.max_tool_calls_per_session",
    knownSeed: 24,
    breaks: ["I9"]
  },
  {
    name: "goodbye-before-everything-is-sent",
    file: agent("session/shutdownNotice.ts"),
    find: "    yield* replication.flush\n",
    replace: "",
    also: [
      {
        file: "test/simulation/Verbs.ts",
        find: "if (session.events.length !== final_rev || hex(session.hash) !== final_hash)",
        replace: "if (final_hash === reason)"
      }
    ],
    knownSeed: 9,
    breaks: ["L1", "I10", "I3"]
  },
  ...APPROVAL_MUTANTS,
  ...PROPOSAL_MUTANTS,
  ...SKILL_MUTANTS,
  ...SLOT_MUTANTS,
  ...RIVAL_MUTANTS,
  ...CLOCK_MUTANTS,
  ...LABEL_MUTANTS,
  ...MEMORY_MUTANTS,
  ...STOP_MUTANTS,
  ...REQUEST_MUTANTS,
  ...ANSWER_MUTANTS,
  ...CAP_MUTANTS
]
