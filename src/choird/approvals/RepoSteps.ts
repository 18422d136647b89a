/**
 * Brings an approved change into the agent's repository: the same commit however often it is made, pushed only onto the commit
 * that the person saw it on. Whatever moved meanwhile is `CHANGED` (R54).
 */
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, Result, Schedule } from "effect"
import type { CommitId } from "#schema/Image.ts"
import type { Approved } from "./executionSteps.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork, type Identity } from "#src/choird/repos/GitWork.ts"
import { identityOf, pushProblem, RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import { repoLabel } from "#src/choird/repos/Repos.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { draftFiles } from "./draftFiles.ts"
import { changed, ExecutionFailed, failedAs } from "./ExecutionFailed.ts"
import type { Job } from "./executionRows.ts"
import { type Proposal, proposalTitle } from "./Proposal.ts"
import type { Facts } from "./ProposalFacts.ts"
import { PROPOSAL_RETRY_MS, PROPOSAL_TRIES_MAX } from "./ConfigSteps.ts"

/** A proposal that changes the repository, with what choird found when it was asked for. */
export interface RepoProposal {
  readonly proposal: Exclude<Proposal, { kind: "config_change" }>
  readonly facts: Facts
}

/** Both may be taken again after a death at any point. */
export class RepoSteps extends Context.Service<
  RepoSteps,
  {
    /** Decides which commit it will be and by whom; nothing leaves this host. */
    commit(
      approved: Approved,
      proposed: RepoProposal
    ): Effect.Effect<Required<Pick<Job, "commit" | "identity">>, ExecutionFailed>
    /** Moves the configured branch to that commit, unless it is there already. */
    push(approved: Approved, proposed: RepoProposal, job: Job): Effect.Effect<void, ExecutionFailed>
  }
>()("choir/choird/RepoSteps") {
  static readonly layer = Layer.effect(
    RepoSteps,
    Effect.suspend(() => make())
  )
}

const NAMELESS = "choir.invalid"

const repository = failedAs("REPOSITORY")
/** A remote that is silent for a moment gets another chance. */
const patiently = <A, E extends { readonly _tag: string; readonly message: string }>(call: Effect.Effect<A, E>) =>
  call.pipe(
    Effect.retry({
      while: ({ _tag }) => _tag === "FetchFailed",
      schedule: Schedule.spaced(PROPOSAL_RETRY_MS),
      times: PROPOSAL_TRIES_MAX
    }),
    Effect.mapError((error) => repository(error))
  )

const make = Effect.fnUntraced(function* () {
  const access = yield* RepoAccess
  const config = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const git = yield* Git
  const sessions = yield* SessionStore
  const work = yield* GitWork

  /** The git identity that the proposing session was bound to. */
  const boundTo = ({ session_id }: Approved["row"]) =>
    Effect.map(
      databaseDefect(sessions.get(session_id)),
      (session) => Option.getOrUndefined(session)?.resource_bindings.git_identity
    )

  const committer = Effect.fnUntraced(function* (row: Approved["row"]) {
    const { config: running } = yield* config.current
    return identityOf(running, row.agent_id, yield* boundTo(row))
  })

  /** A repository of choird's own for this execution alone, and the branch as it stands at the other side. */
  const open = Effect.fnUntraced(function* ({ row }: Approved, { facts }: RepoProposal) {
    const { config: running } = yield* config.current
    const own = Object.hasOwn(running.agents, row.agent_id) ? running.agents[row.agent_id]?.repo : undefined
    const { repo } = facts
    if (repo === undefined || own === undefined) return yield* changed("config.json has no such agent any more")
    if (own.url !== repo.url || own.ref !== repo.ref)
      return yield* changed(
        `the agent's repository is ${own.url} at ${own.ref} by now, and was ${repo.url} at ${repo.ref}`
      )
    const checked = yield* Effect.mapError(Effect.fromResult(checkSource(own)), repository)
    const source = yield* access(row.agent_id, checked, yield* boundTo(row))
    const place = join(config.home, "repos", "work", `approval-${row.approval_id}`)
    yield* Effect.mapError(
      Effect.andThen(fs.makeDirectory(join(place, ".."), { recursive: true }), work.begin(place)),
      repository
    )
    return { place, source, base: repo.base, head: yield* patiently(work.head(place, source)) }
  })
  type Open = Effect.Success<ReturnType<typeof open>>

  const draftCommit = Effect.fnUntraced(function* (
    { row }: Approved,
    { base, place, source }: Open,
    proposal: Extract<Proposal, { kind: "tool" | "skill" }>,
    identity: Identity
  ) {
    yield* patiently(git.fetch(place, source, { name: `refs/heads/${source.ref}`, commit: base }))
    const existing = yield* Effect.mapError(git.tree(place, base, repoLabel(row)), repository)
    const draft = draftFiles(proposal, existing)
    if (Result.isFailure(draft)) return yield* changed(draft.failure)
    const message = `${proposalTitle(proposal)}\n\nProposed in session ${row.session_id}; approval ${row.approval_id}, by ${row.resolved_by ?? "nobody"}.\n`
    const { files } = draft.success
    const date = row.resolved_at ?? row.created_at
    return yield* Effect.mapError(work.commit(place, { parent: base, files, message, identity, date }), repository)
  })

  const branchCommit = Effect.fnUntraced(function* (
    { row }: Approved,
    { base, place, source }: Open,
    { branch, commit }: Extract<Proposal, { kind: "repo_change" }>["repo"]
  ) {
    const { ref } = yield* Effect.mapError(Effect.fromResult(checkSource({ url: source.url, ref: branch })), repository)
    const tip = yield* patiently(work.branch(place, { ...source, ref }))
    if (tip !== commit) return yield* changed(`${branch} is at ${tip} by now, and ${commit} was approved`)
    const ahead = yield* Effect.mapError(work.ahead(place, base, commit), repository)
    if (Option.isNone(ahead)) return yield* changed(`${branch} does not hold ${base} any more`)
    yield* Effect.mapError(git.tree(place, commit, repoLabel(row)), repository)
    return commit
  })

  /** The objects of the commit, made or fetched into the execution's own repository. */
  const commitOf = (
    approved: Approved,
    opened: Open,
    { proposal }: RepoProposal,
    identity: Identity
  ): Effect.Effect<CommitId, ExecutionFailed> =>
    proposal.kind === "repo_change"
      ? branchCommit(approved, opened, proposal.repo)
      : draftCommit(approved, opened, proposal, identity)

  const movedTo = ({ base, head, source }: Open) =>
    changed(`${source.ref} is at ${head} by now, and the person saw the change of ${base}`)

  return RepoSteps.of({
    commit: Effect.fn("RepoSteps.commit")(function* (approved, proposed) {
      const { agent_id } = approved.row
      const opened = yield* open(approved, proposed)
      if (opened.head !== opened.base) return yield* movedTo(opened)
      const known = yield* committer(approved.row)
      const identity = {
        name: known?.name ?? agent_id,
        email: known?.email ?? `${agent_id}@${NAMELESS}`
      }
      return { commit: yield* commitOf(approved, opened, proposed, identity), identity }
    }),
    push: Effect.fn("RepoSteps.push")(function* (approved, proposed, { commit, identity }) {
      if (commit === undefined || identity === undefined) return yield* Effect.die(new Error("nothing was committed"))
      const opened = yield* open(approved, proposed)
      const { base, head, place, source } = opened
      if (head === commit) return
      if (head !== base) return yield* movedTo(opened)
      const problem = pushProblem(source)
      if (problem !== undefined) return yield* repository({ message: problem })
      const again = yield* commitOf(approved, opened, proposed, identity)
      if (again !== commit) return yield* changed(`it would be the commit ${again} by now, and was ${commit}`)
      const pushed = yield* Effect.result(work.push(place, source, commit))
      if (Result.isSuccess(pushed)) return
      // The answer may have been lost, or somebody else was quicker.
      const now = yield* patiently(work.head(place, source))
      if (now === commit) return
      return yield* now === base ? repository(pushed.failure) : movedTo({ ...opened, head: now })
    })
  })
})
