/** A tool or a skill that an agent proposes for its own repository; choird makes the commit from the payload. */
import { Context, Effect, Layer, Result } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { AgentViews } from "#src/choird/agents/AgentViews.ts"
import { Images } from "#src/choird/images/Images.ts"
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork, type Identity } from "#src/choird/repos/GitWork.ts"
import { type ImagePlan, merge, skillSources } from "#src/choird/repos/Merge.ts"
import { repoLabel, Repos } from "#src/choird/repos/Repos.ts"
import { capabilities } from "#src/choird/runtime/capabilities.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { judge } from "#src/choird/repos/skillIndex.ts"
import { pricedBounds } from "#src/shared/image/skillBounds.ts"
import { reportLines } from "#src/shared/image/skillReportText.ts"
import { visibleLine } from "#src/choird/approvals/approvalText.ts"
import { nameFacts } from "#src/choird/approvals/nameFacts.ts"
import { draftFiles, draftPaths, withFiles } from "./draftFiles.ts"
import type { ApprovalRefused } from "#src/choird/approvals/ApprovalRefused.ts"
import type { Execution } from "#src/choird/approvals/Execution.ts"
import { changed } from "#src/choird/approvals/ExecutionFailed.ts"
import { type Proposal, proposalTitle } from "#src/choird/approvals/Proposal.ts"
import { pendingBuildText } from "#src/choird/approvals/proposalNotes.ts"
import { repoText, toolFacts } from "./proposalText.ts"
import {
  badProposal,
  type Preview,
  type ProposalType,
  type Proposer,
  unreachable
} from "#src/choird/approvals/ProposalType.ts"
import { compare, makeTarget } from "./repoPreview.ts"
import { type Opened, repository, RepoSteps, retryFetch } from "./RepoSteps.ts"

type Drafted = Extract<Proposal, { kind: "tool" | "skill" }>

export class AgentChange extends Context.Service<
  AgentChange,
  ProposalType<Drafted> & {
    /** The images with and without a proposal, as a rehearsal needs them. */
    images(
      proposer: Proposer,
      proposal: Drafted
    ): Effect.Effect<{ readonly today: ImagePlan; readonly proposed: ImagePlan }, ApprovalRefused>
  }
>()("choir/choird/AgentChange") {
  static readonly layer = Layer.effect(
    AgentChange,
    Effect.suspend(() => make())
  )
}

/** Makes the same commit whenever it is called. */
const makeDraftCommit = Effect.gen(function* () {
  const git = yield* Git
  const work = yield* GitWork
  return Effect.fnUntraced(function* (
    { approved: { row }, proposal }: Execution<Drafted>,
    { base, place, source }: Opened,
    identity: Identity
  ) {
    yield* retryFetch(git.fetch(place, source, { name: `refs/heads/${source.ref}`, commit: base }))
    const existing = yield* Effect.mapError(git.tree(place, base, repoLabel(row)), repository)
    const draft = draftFiles(proposal, existing)
    if (Result.isFailure(draft)) return yield* changed(draft.failure)
    const message = `${proposalTitle(proposal)}\n\nProposed in session ${row.session_id}; approval ${row.approval_id}, by ${row.resolved_by ?? "nobody"}.\n`
    const { files } = draft.success
    const date = row.resolved_at ?? row.created_at
    return yield* Effect.mapError(work.commit(place, { parent: base, files, message, identity, date }), repository)
  })
})

/** The gate's report on a proposed skill, for the person who decides; a failure says why the skill cannot run. */
const judgeSkill = (
  agent_id: AgentId,
  { name, skill }: Extract<Proposal, { kind: "skill" }>,
  {
    current,
    model,
    runtime,
    shared
  }: {
    readonly current: { readonly files: ReadonlyArray<RepoFile> }
    readonly shared: { readonly files: ReadonlyArray<RepoFile> }
    readonly model: Parameters<typeof pricedBounds>[1]
    readonly runtime: Parameters<typeof capabilities>[0]
  }
): Result.Result<ReadonlyArray<string>, string> => {
  const sources = skillSources(
    { label: repoLabel({ global: true }), files: shared.files },
    { label: repoLabel({ agent_id }), files: current.files },
    capabilities(runtime)
  )
  const read = readSkill(name, JSON.stringify(skill.spec), sources)
  if (Result.isFailure(read)) return Result.fail(`the skill ${name} cannot run. ${read.failure.join("; ")}`)
  const found = judge([...shared.files, ...current.files], sources.schemas, read.success, skill.spec)
  const report = { ...found, bounds: pricedBounds(found.bounds, model) }
  return report.grade === "rejected"
    ? Result.fail(`the gate rejects the skill ${name}. ${reportLines(report).join("; ")}`)
    : Result.succeed(reportLines(report).map(visibleLine))
}

const make = Effect.fnUntraced(function* () {
  const images = yield* Images
  const repos = yield* Repos
  const views = yield* AgentViews
  const { type: runtime } = yield* ContainerRuntime
  const steps = yield* RepoSteps
  const targetOf = yield* makeTarget
  const draftCommit = yield* makeDraftCommit

  /** The files of both repositories, and those that the proposal adds to the agent's own. */
  const look = Effect.fnUntraced(function* (proposer: Proposer, proposal: Drafted) {
    const { agent_id } = proposer
    const { git_identity, global, model, network, own } = yield* targetOf(proposer)
    const replaced = draftPaths(proposal)
    const held = (path: string) => replaced.has(path)
    const current = yield* Effect.mapError(repos.snapshot({ agent_id, git_identity }, own, { held }), unreachable)
    const shared = yield* Effect.mapError(repos.snapshot({ global: true }, global), unreachable)
    const drafted = draftFiles(proposal, current.files)
    if (Result.isFailure(drafted)) return yield* badProposal(drafted.failure)
    return { current, shared, model, network, own, ...drafted.success }
  })

  const preview = Effect.fn("AgentChange.preview")(function* (proposer: Proposer, proposal: Drafted) {
    const { agent_id } = proposer
    const { current, files, isDraft, model, network, own, shared } = yield* look(proposer, proposal)
    const { calls_apart } = views.of(agent_id)
    const judged =
      proposal.kind === "skill"
        ? judgeSkill(agent_id, proposal, { current, model, runtime, shared })
        : Result.succeed([])
    if (Result.isFailure(judged)) return yield* badProposal(judged.failure)
    const after = withFiles(current.files, files)
    const difference = yield* compare(runtime, agent_id, shared, current.files, after)
    const isGlobal = shared.files.some(({ path }) => path === files.at(-1)?.path)
    const facts = [
      ...(isDraft ? [] : pendingBuildText(yield* images.origin(agent_id), current)),
      ...(proposal.kind === "tool" ? toolFacts(proposal, isDraft, { runtime, network, calls_apart }) : []),
      ...judged.success,
      ...nameFacts(shared.files, current.files, after),
      ...(isGlobal ? [`It replaces the global ${proposal.kind} of the same name.`] : [])
    ]
    return {
      facts: { repo: { ...own, base: current.commit }, ...(isDraft ? { is_draft: true } : {}) },
      shown: repoText(proposal, { ...own, base: current.commit, difference }, facts)
    } satisfies Preview
  })

  const imagesOf = Effect.fn("AgentChange.images")(function* (proposer: Proposer, proposal: Drafted) {
    const { current, files, shared } = yield* look(proposer, proposal)
    const global = { label: repoLabel({ global: true }), files: shared.files }
    const planOf = Effect.fnUntraced(function* (own: ReadonlyArray<RepoFile>) {
      const plan = merge(global, { label: repoLabel(proposer), files: own }, capabilities(runtime))
      return Result.isSuccess(plan) ? plan.success : yield* badProposal(plan.failure.message)
    })
    return { today: yield* planOf(current.files), proposed: yield* planOf(withFiles(current.files, files)) }
  })

  return AgentChange.of({
    preview,
    images: imagesOf,
    execute: Effect.fn("AgentChange.execute")((execution, standing) =>
      steps.take(execution, standing, (opened, identity) => draftCommit(execution, opened, identity))
    )
  })
})
