/**
 * The rehearsals of proposed skills and tools while they wait for a decision: one at a time, once each, kept in the row and told where the person was asked.
 * A decision does not wait for one.
 */
import { Context, Effect, Layer, Queue, Result, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId } from "#schema/Ids.ts"
import type { ToolName } from "#schema/Tool.ts"
import type { Rehearsal } from "#schema/Trial.ts"
import { restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { programProblem, proposedProgram } from "#src/choird/trials/comparePrograms.ts"
import {
  nothingRecorded,
  type Programs,
  type RehearsalSubject,
  Rehearsals,
  type TrialImage,
  trialImage
} from "#src/choird/trials/Rehearsals.ts"
import type { ImagePlan } from "#src/choird/repos/Merge.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { ProgramTrials } from "#src/choird/trials/ProgramTrials.ts"
import { AgentChange } from "./AgentChange.ts"
import * as rows from "#src/choird/approvals/approvalRows.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { tellMore } from "#src/choird/approvals/askPerson.ts"
import { rehearsalText } from "#src/choird/approvals/rehearsalText.ts"
import { readStored } from "#src/choird/approvals/requestTypes.ts"

/** The longest sleep before choird checks again for proposals to rehearse, and the pause after a failed look. */
const REHEARSAL_LOOK_MS_MAX = 60_000
const REHEARSAL_RETRY_MS = 5000

/** Rehearses the proposals that nobody has decided yet, one at a time, and adds each result to the request. */
export class ProposalRehearsals extends Context.Service<
  ProposalRehearsals,
  {
    /** Rehearses them for as long as the scope lives, beginning with those that an earlier choird did not finish. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
  }
>()("choir/choird/ProposalRehearsals") {
  static readonly layer = Layer.effect(
    ProposalRehearsals,
    Effect.suspend(() => make)
  )
}

const proposalOf = ({ canonical, request_type }: rows.ApprovalRow) => {
  const stored = Result.getOrUndefined(readStored(request_type, canonical))
  if (stored?.type !== "proposal") return undefined
  const { proposal } = stored
  return proposal.kind === "skill" || proposal.kind === "tool" ? proposal : undefined
}

const manifestIn = ({ manifests }: TrialImage, tool: ToolName) => manifests.findLast(({ llm }) => llm.name === tool)

/** The programs of a tool. The proposed one may do less here than a command of its agent, and runs only where such a command would run unasked. */
const programsOf = Effect.fnUntraced(function* (
  agent_id: AgentId,
  tool: ToolName,
  { proposed, today }: Pick<RehearsalSubject, "proposed" | "today">,
  plan: ImagePlan
): Effect.fn.Return<Programs, never, ConfigStore | ContainerRuntime | ProgramTrials> {
  const config = yield* ConfigStore
  const programTrials = yield* ProgramTrials
  const runtime = yield* ContainerRuntime
  const manifest = manifestIn(proposed, tool)
  const { approvals } = (yield* config.current).config
  const problem =
    runtime.type === "process"
      ? "the runtime of this choird isolates nothing"
      : approvals.confirm_external === "always"
        ? "a person is asked before each command of this agent"
        : (programProblem("its", manifest) ?? programProblem("today's", manifestIn(today, tool)))
  if (problem !== undefined || manifest === undefined) return Result.fail(problem ?? "its manifest is missing")
  return Result.map(proposedProgram(manifest, plan), (program) => ({
    today: (inputs) => programTrials.run({ agent_id, tool, inputs }),
    proposed: (inputs) => programTrials.run({ agent_id, tool, inputs, program })
  }))
})

/** The rehearsal of a proposal. */
const rehearsed = Effect.fnUntraced(function* (row: rows.ApprovalRow) {
  const agentChange = yield* AgentChange
  const rehearsals = yield* Rehearsals
  const proposal = proposalOf(row)
  if (proposal === undefined) return { runs: [], cost_usd: 0, problem: "it cannot be read" } satisfies Rehearsal
  const { agent_id, session_id } = row
  const { kind } = proposal
  const name = proposal.kind === "tool" ? proposal.tool.manifest.llm.name : proposal.name
  const place = { agent_id, session_id, kind, name }
  const none = (problem: string): Rehearsal => ({ kind, runs: [], cost_usd: 0, problem })
  if (!(yield* rehearsals.isPossible(place))) return none(nothingRecorded(kind))
  const images = yield* Effect.result(agentChange.images(row, proposal))
  if (Result.isFailure(images)) return none(images.failure.message)
  const { proposed: plan } = images.success
  const both = { today: trialImage(images.success.today), proposed: trialImage(plan) }
  const programs =
    proposal.kind === "tool"
      ? { programs: yield* programsOf(agent_id, proposal.tool.manifest.llm.name, both, plan) }
      : {}
  const subject: RehearsalSubject = { ...place, ...both, ...programs }
  return yield* rehearsals.rehearse(subject)
})

/** Keeps an outcome, and tells a person who still has to decide. */
const keep = Effect.fnUntraced(
  function* (row: rows.ApprovalRow, rehearsal: Rehearsal) {
    const config = yield* ConfigStore
    const outbox = yield* Outbox
    const sql = yield* SqlClient.SqlClient
    const isPending = yield* rows.keepRehearsal(row, rehearsal)
    if (!isPending || rehearsal.runs.length === 0) return
    const text = `About approval ${row.approval_id}, ${row.summary}:\n${rehearsalText(rehearsal)}`
    const dms = yield* tellMore((yield* config.current).config, row, "rehearsed", text)
    yield* sql.afterCommit(Effect.forEach(dms, outbox.wake, { discard: true }))
  },
  inTransaction,
  Effect.orDie
)

const rehearseOne = Effect.fnUntraced(function* (row: rows.ApprovalRow) {
  const audit = yield* Audit
  const rehearsal = yield* rehearsed(row)
  yield* keep(row, rehearsal)
  const { agent_id, approval_id, session_id } = row
  const verdicts = rehearsal.runs.map(({ verdict }) => verdict)
  const detail = { approval_id, verdicts, cost_usd: rehearsal.cost_usd }
  yield* audit.record({ who: "choird", action: "proposal.rehearse", session_id, agent_id, detail })
})

const make = Effect.gen(function* () {
  const approvals = yield* Approvals
  const context = Context.pick(
    AgentChange,
    Audit,
    ConfigStore,
    ContainerRuntime,
    Outbox,
    ProgramTrials,
    Rehearsals,
    SqlClient.SqlClient
  )(yield* Effect.context<Effect.Services<ReturnType<typeof rehearseOne>>>())

  const look = Effect.gen(function* () {
    for (const row of yield* rows.awaitingRehearsal) yield* rehearseOne(row)
  }).pipe(
    Effect.provideContext(context),
    Effect.catchCause((cause) =>
      Effect.andThen(Effect.logWarning("a rehearsal is tried again later", cause), Effect.sleep(REHEARSAL_RETRY_MS))
    )
  )

  return ProposalRehearsals.of({
    run: Effect.gen(function* () {
      const woken = yield* Queue.sliding<void>(1)
      yield* Stream.runForEach(approvals.requested, () => Queue.offer(woken, undefined)).pipe(
        restarted("the watch for proposals"),
        Effect.forkScoped
      )
      const next = Effect.timeoutOption(Queue.take(woken), REHEARSAL_LOOK_MS_MAX)
      yield* Effect.forever(Effect.andThen(next, look)).pipe(restarted("the rehearsals"), Effect.forkScoped)
    })
  })
})
