/**
 * What breaks each invariant: one text of one source that holds it, and what stands there instead. The tests have to notice, by the
 * words of `red`; docs/evidence/invariants.md lists them.
 */

export interface Mutation {
  readonly id: string
  readonly invariant: number
  /** From the repository's root. */
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly find: string
  readonly replace: string
  /** What is broken by it. */
  readonly why: string
  /** A part of the message of the assertion that fails. */
  readonly red: string
}

export const mutated = (text: string, { find, replace }: Mutation): string => text.replace(find, () => replace)

export const MUTATIONS: ReadonlyArray<Mutation> = [
  {
    id: "1a",
    invariant: 1,
    file: "src/agent/session/laneFibers.ts",
    find: "FiberMap.run(jobs, core.job_id, job(core, exhausted), {",
    replace: "FiberMap.run(jobs, core.job_id, Effect.andThen(Effect.forkDetach(job(core, exhausted)), Effect.never), {",
    why: "a job's fiber is no child of edge's scope",
    red: "a job's call outlived the edge session that was interrupted"
  },
  {
    id: "1b",
    invariant: 1,
    file: "src/agent/session/Session.ts",
    find: "yield* endJobs(outcome, reason)",
    replace: "",
    why: "edge ends at a budget and leaves its jobs running in the log",
    red: "edge did not end after its jobs"
  },
  {
    id: "1c",
    invariant: 1,
    file: "src/shared/session/fold.ts",
    find: 'if (heard.cores.size > 0) return Result.fail("edge cannot end before its jobs")',
    replace: "",
    why: "the fold takes an end of edge while jobs run",
    red: "the fold took an end of edge while a job runs"
  },
  {
    id: "1d",
    invariant: 1,
    file: "src/agent/session/laneFibers.ts",
    find: "Effect.ensuring(endJobFibers),",
    replace: "",
    why: "edge's fiber does not wait for those of its jobs",
    red: "edge's fiber ended before its job's"
  },
  {
    id: "1e",
    invariant: 1,
    file: "src/agent/session/laneFibers.ts",
    find: "Effect.all([endJobFibers, Fiber.interrupt(edge)]",
    replace: "Effect.all([Fiber.interrupt(edge)]",
    why: "jobs go on while a session that broke off waits for edge's call",
    red: "a job went on after its session broke off"
  },
  {
    id: "2a",
    invariant: 2,
    file: "src/agent/calls/locks.ts",
    find: "excluded(claim, held) || excluded(claim, waiting)",
    replace: "excluded(claim, waiting)",
    why: "a claim is granted although another one holds the resource",
    red: "two owners held one resource at the same time"
  },
  {
    id: "2b",
    invariant: 2,
    file: "src/agent/calls/locks.ts",
    find: "if (!conflicts(waiter, claim) || excluded(waiter, held) || excluded(waiter, waiting)) waiting.push(waiter)",
    replace: "if (!conflicts(waiter, claim)) waiting.push(waiter)",
    why: "a release grants the resource to everyone who waits",
    red: "two owners held one resource at the same time"
  },
  {
    id: "2c",
    invariant: 2,
    file: "src/agent/calls/ToolRunner.ts",
    find: "locks.withLocks(lane, prepared.locks,",
    replace: "locks.withLocks(lane, [],",
    why: "a tool runs without the locks that it needs",
    red: "two owners held one resource at the same time"
  },
  {
    id: "3a",
    invariant: 3,
    file: "src/shared/session/fold.ts",
    find: "injections: core.injections + 1, injection_rev: rev,",
    replace: "injections: core.injections + 1, step: 0, tool_calls: 0, injection_rev: rev,",
    why: "an instruction resets the job's steps and calls",
    red: "an instruction gave the job a fresh budget"
  },
  {
    id: "3b",
    invariant: 3,
    file: "src/shared/session/fold.ts",
    find: "const seen = inWindow(moved, payload.target, rev)",
    replace: `const before = coreOf(moved, payload.target)
      const seen = inWindow(before === undefined ? moved : withCore(moved, { ...before, window: [] }), payload.target, rev)`,
    why: "an instruction takes away what the job has seen before",
    red: "a later prompt does not begin with what the job saw before"
  },
  {
    id: "3c",
    invariant: 3,
    file: "src/agent/arbiter/decideCores.ts",
    find: "if (core.injections >= core.budgets.max_injections)",
    replace: "if (false)",
    why: "instructions have no limit",
    red: "a job took more than 2 instructions"
  },
  {
    id: "4a",
    invariant: 4,
    file: "src/agent/arbiter/Arbiter.ts",
    find: "const tooLarge = log.append(events)",
    replace: "state = folded.success\n        const tooLarge = log.append(events)",
    why: "the state runs ahead of the log",
    red: "the state knows of an event that the log does not hold"
  },
  {
    id: "4b",
    invariant: 4,
    file: "src/choird/sessions/decideAppend.ts",
    find: "if (differs !== undefined) return",
    replace: "if (false) return",
    why: "choird does not compare what it holds with what it is sent",
    red: "choird took another history for its own"
  },
  {
    id: "4c",
    invariant: 4,
    file: "src/shared/events/hashChain.ts",
    find: "bytes.set(previous)",
    replace: "bytes.fill(0, 0, previous.length)",
    why: "a digest covers its own event alone",
    red: "the newest digest does not depend on the oldest event"
  },
  {
    id: "5a",
    invariant: 5,
    file: "src/shared/session/lanes.ts",
    find: "along(CORE_TRANSITIONS, core.state, name)",
    replace: 'along(CORE_TRANSITIONS, core.state, name) ?? "CORE_COMPLETED"',
    why: "a job moves where its table has no entry",
    red: "the fold took a transition that the table does not list"
  },
  {
    id: "5b",
    invariant: 5,
    file: "schema/Lane.ts",
    find: "CORE_COMPLETED: {},",
    replace: 'CORE_COMPLETED: { InjectedInstruction: ["CORE_REASONING"] },',
    why: "a job that is over can be brought back",
    red: "a job's table is not the expected one"
  },
  {
    id: "5c",
    invariant: 5,
    file: "src/agent/session/EdgeLane.ts",
    find: "if (edge.step >= turn_max_steps)",
    replace: "if (false)",
    why: "a turn has no bound on its steps",
    red: "a turn went on for longer than turn_max_steps"
  },
  {
    id: "6a",
    invariant: 6,
    file: "src/shared/session/calls.ts",
    find: "const next = inWindow(withLane(moved, lane, { calls, step, ...environment }), lane, rev)",
    replace:
      "const next = inWindow(inWindow(withLane(moved, lane, { calls, step, ...environment }), lane, rev), EDGE, rev)",
    why: "a job's outputs come into edge's window",
    red: "edge was shown what the job thought"
  },
  {
    id: "6b",
    invariant: 6,
    file: "src/shared/session/search.ts",
    find: "return event.lane === lane ||",
    replace: "return lane === EDGE || event.lane === lane ||",
    why: "edge searches the lanes of jobs",
    red: "edge may search what the job thought"
  },
  {
    id: "7a",
    invariant: 7,
    file: "src/shared/session/fold.ts",
    find: 'if (lane !== EDGE) return Result.fail("only edge speaks to the user")',
    replace: "",
    why: "jobs may speak to the user",
    red: "a job spoke to the user itself"
  },
  {
    id: "7b",
    invariant: 7,
    file: "src/agent/session/EdgeLane.ts",
    find: 'return isSpent ? { type: "say", text: spentText(messageSpent(message_max_steps)) } : { type: "ask", purpose }',
    replace: 'return { type: "say", text: "the job ended" }',
    why: "the runtime tells of the job in place of edge",
    red: "the user did not hear of the job from edge"
  },
  {
    id: "7c",
    invariant: 7,
    file: "src/shared/session/fold.ts",
    find: "if (payload.in_reply_to !== answered)",
    replace: "if (false)",
    why: "a report may go to another conversation than the request",
    red: "a report answered another message"
  },
  {
    id: "8a",
    invariant: 8,
    file: "src/agent/arbiter/Arbiter.ts",
    find: "log.restore(events)\n        state = folded.success",
    replace: "log.restore(events)",
    why: "a restarted agent does not know what it was doing",
    red: "the session did not go on after a crash at event 1"
  },
  {
    id: "8b",
    invariant: 8,
    file: "src/agent/calls/inDoubt.ts",
    find: '.filter(({ effect, stage }) => stage === "committed" && effect !== "none")',
    replace: ".filter(() => false)",
    why: "a call whose end nobody knows is not closed",
    red: "whose end nobody knows was not closed as unknown"
  },
  {
    id: "8c",
    invariant: 8,
    file: "src/agent/settings/toolSecrets.ts",
    find: "scrubJson: makeJsonScrub(values)",
    replace: "scrubJson: (value) => value",
    why: "a secret that a tool prints is committed",
    red: "a secret came into a result, and so into the log"
  },
  {
    id: "9a",
    invariant: 9,
    file: "src/agent/arbiter/decideCalls.ts",
    find: '  lane === EDGE && effect !== "none" && !beside_jobs && cores.size > 0\n',
    replace: "  false\n",
    why: "edge writes while a job runs",
    red: "a proposal that had to be refused took effect"
  },
  {
    id: "9b",
    invariant: 9,
    file: "src/agent/arbiter/decideCalls.ts",
    find: "if (allowed_tools !== undefined && !allowed_tools.includes(tool))",
    replace: "if (false)",
    why: "a job uses tools that it was not given",
    red: "a proposal that had to be refused took effect"
  },
  {
    id: "9c",
    invariant: 9,
    file: "src/agent/calls/grantedCall.ts",
    find: "replication.reached(committed.rev)",
    replace: "Effect.void",
    why: "an external effect does not wait for choird",
    red: "an external effect happened before choird knew of its intent"
  },
  {
    id: "10a",
    invariant: 10,
    file: "package.json",
    find: '"canonicalize": "',
    replace: '"express": "5.0.0",\n    "canonicalize": "',
    why: "a dependency that nobody decided on",
    red: "package.json needs what nobody decided on"
  },
  {
    id: "10b",
    invariant: 10,
    file: "src/agent/session/Mailbox.ts",
    find: "import type { UserMessage }",
    replace: 'import "#src/choird/queues/Inbox.ts"\nimport type { UserMessage }',
    why: "an agent uses choird's own code",
    red: "an import goes against the arrows"
  },
  {
    id: "10c",
    invariant: 10,
    file: "src/choird/queues/Outbox.ts",
    find: 'import { SqlClient } from "effect/sql"',
    replace: 'import { PgClient } from "@effect/sql-pg"\nimport { SqlClient } from "effect/sql"',
    why: "a store opens a connection of its own",
    red: "a second place opens the database"
  },
  {
    id: "11a",
    invariant: 11,
    file: "src/choird/agents/Lifecycle.ts",
    find: "if (runs.has(agent_id)) return yield* alreadyThere(views.of(agent_id))",
    replace: "",
    why: "choird starts an agent that runs",
    red: "an agent that runs was started again"
  },
  {
    id: "11b",
    invariant: 11,
    file: "src/choird/sessions/decideAppend.ts",
    find: "if (caller_epoch < session.epoch || heartbeat.epoch < session.epoch)",
    replace: "if (false)",
    why: "choird takes the events of an agent that it has replaced",
    red: "choird takes events of an epoch that is over"
  },
  {
    id: "11c",
    invariant: 11,
    file: "src/agent/control/Replication.ts",
    find: 'if (reply.action === "FENCED")',
    replace: "if (false)",
    why: "a replaced agent goes on beside its successor",
    red: "an agent of an older epoch goes on"
  },
  {
    id: "11d",
    invariant: 11,
    file: "src/choird/agents/Epoch.ts",
    find: "yield* fence(row)",
    replace: "undefined",
    why: "an epoch that crashed keeps its token until its container is gone",
    red: "an epoch began before the one before it was fenced and gone"
  }
]
