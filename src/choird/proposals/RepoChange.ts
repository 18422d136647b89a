/** A branch that an agent pushed and proposes to merge into its repository, as a fast-forward of the configured ref. */
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option } from "effect"
import type { CommitId } from "#schema/Image.ts"
import { sessionOfBranch } from "#schema/ProposedChange.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork, PROPOSAL_COMMITS_MAX } from "#src/choird/repos/GitWork.ts"
import { repoLabel, Repos } from "#src/choird/repos/Repos.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import type { BadRepository, TreeEntry } from "#src/choird/repos/Tree.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import type { GitFailed, GitMissing } from "#src/shared/git/git.ts"
import { refused } from "#src/choird/approvals/ApprovalRefused.ts"
import { visibleLine } from "#src/choird/approvals/approvalText.ts"
import { muchChanged } from "./Difference.ts"
import type { Execution } from "#src/choird/approvals/Execution.ts"
import { nameFacts } from "#src/choird/approvals/nameFacts.ts"
import { changed } from "#src/choird/approvals/ExecutionFailed.ts"
import type { Proposal } from "#src/choird/approvals/Proposal.ts"
import { pendingBuildText } from "#src/choird/approvals/proposalNotes.ts"
import { repoText } from "./proposalText.ts"
import {
  badProposal,
  largeProposal,
  type Preview,
  type ProposalType,
  type Proposer,
  unreachable
} from "#src/choird/approvals/ProposalType.ts"
import { compare, makeTarget } from "./repoPreview.ts"
import { type Opened, repository, RepoSteps, retryFetch } from "./RepoSteps.ts"

type Branch = Extract<Proposal, { kind: "repo_change" }>

export class RepoChange extends Context.Service<RepoChange, ProposalType<Branch>>()("choir/choird/RepoChange") {
  static readonly layer = Layer.effect(
    RepoChange,
    Effect.suspend(() => make())
  )
}

/** Paths that differ between two trees, with the bytes that they have in both together. */
const changedEntries = (before: ReadonlyArray<TreeEntry>, after: ReadonlyArray<TreeEntry>) => {
  const old = new Map(before.map((entry) => [entry.path, entry]))
  const fresh = new Map(after.map((entry) => [entry.path, entry]))
  const isOther = ({ id, mode, path }: TreeEntry, others: ReadonlyMap<string, TreeEntry>) => {
    const other = others.get(path)
    return other === undefined || other.id !== id || other.mode !== mode
  }
  const changed = [...before.filter((entry) => isOther(entry, fresh)), ...after.filter((entry) => isOther(entry, old))]
  return {
    paths: new Set(changed.map(({ path }) => path)),
    bytes: changed.reduce((sum, { bytes }) => sum + bytes, 0)
  }
}

const asRefusal = <A>(read: Effect.Effect<A, GitMissing | GitFailed | BadRepository>) =>
  Effect.mapError(read, (error) => (error._tag === "BadRepository" ? badProposal(error.message) : unreachable(error)))

/** Reads the changed files of two commits, if they are few enough. */
const makeReadChanges = Effect.gen(function* () {
  const git = yield* Git
  return Effect.fnUntraced(function* (place: string, label: string, base: CommitId, commit: CommitId) {
    // The listings alone show how much there is to read: a few pushed kilobytes may unpack to hundreds of megabytes.
    const trees = [asRefusal(git.tree(place, base, label)), asRefusal(git.tree(place, commit, label))] as const
    const changes = changedEntries(...(yield* Effect.all(trees)))
    // They name programs that git runs on a checkout, with the settings of the person who runs it.
    const attributes = [...changes.paths].find((path) => /(?:^|\/)\.gitattributes$/iu.test(path))
    if (attributes !== undefined)
      return yield* badProposal(`${visibleLine(attributes)} says which programs git runs on a checkout: leave it out`)
    const much = muchChanged(changes.bytes)
    if (much !== undefined) return yield* largeProposal(much)
    const held = (path: string) => changes.paths.has(path)
    const filesOf = (id: CommitId) => asRefusal(git.files(place, id, label, { held }))
    return yield* Effect.all([filesOf(base), filesOf(commit)])
  })
})

/** The commits of the branch that the configured ref lacks, if it may be merged. */
const makeReadBranch = Effect.gen(function* () {
  const targetOf = yield* makeTarget
  const work = yield* GitWork
  return Effect.fnUntraced(function* (place: string, proposer: Proposer, { branch, commit }: Branch["repo"]) {
    const target = yield* targetOf(proposer)
    const { own, source } = target
    const { ref } = yield* Effect.mapError(Effect.fromResult(checkSource({ url: own.url, ref: branch })), unreachable)
    const fetched = Effect.gen(function* () {
      yield* work.begin(place)
      const base = yield* work.head(place, source)
      const tip = yield* work.branch(place, { ...source, ref })
      return { base, tip, commits: yield* work.ahead(place, base, tip) }
    })
    const { base, commits, tip } = yield* Effect.mapError(fetched, unreachable)
    if (tip !== commit)
      return yield* refused(
        "CHANGED",
        `the newest commit of ${branch} is ${tip}`,
        "propose that one if it is what you mean"
      )
    if (Option.isNone(commits))
      return yield* badProposal(
        `${branch} does not contain the commit ${base} of ${own.ref}, or is more than ${PROPOSAL_COMMITS_MAX} commits ahead: rebase it, push it, and propose it again`
      )
    if (commits.value.length > PROPOSAL_COMMITS_MAX)
      return yield* badProposal(`${branch} has more than ${PROPOSAL_COMMITS_MAX} commits: squash some of them`)
    return { ...target, base, commits: commits.value }
  })
})

/** Fetches the approved commit, if the branch still is at it. */
const makeBranchCommit = Effect.gen(function* () {
  const git = yield* Git
  const work = yield* GitWork
  return Effect.fnUntraced(function* (
    { approved: { row }, proposal }: Execution<Branch>,
    { base, place, source }: Opened
  ) {
    const { branch, commit } = proposal.repo
    const { ref } = yield* Effect.mapError(Effect.fromResult(checkSource({ url: source.url, ref: branch })), repository)
    const tip = yield* retryFetch(work.branch(place, { ...source, ref }))
    if (tip !== commit) return yield* changed(`${branch} is now at ${tip}, but ${commit} was approved`)
    const ahead = yield* Effect.mapError(work.ahead(place, base, commit), repository)
    if (Option.isNone(ahead)) return yield* changed(`${branch} no longer contains ${base}`)
    yield* Effect.mapError(git.tree(place, commit, repoLabel(row)), repository)
    return commit
  })
})

const make = Effect.fnUntraced(function* () {
  const config = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const images = yield* Images
  const repos = yield* Repos
  const steps = yield* RepoSteps
  const work = yield* GitWork
  const { type: runtime } = yield* ContainerRuntime
  const branchCommit = yield* makeBranchCommit
  const readBranch = yield* makeReadBranch
  const readChanges = yield* makeReadChanges
  const rooms = join(config.home, "repos", "work")

  const preview = Effect.fn("RepoChange.preview")(function* (proposer: Proposer, proposal: Branch) {
    const { agent_id, session_id } = proposer
    const { branch, commit } = proposal.repo
    if (sessionOfBranch(branch) !== session_id)
      return yield* badProposal(`the branch is another session's: it has to begin with proposal/${session_id}/`)
    const room = Effect.andThen(
      fs.makeDirectory(rooms, { recursive: true, mode: 0o700 }),
      fs.makeTempDirectoryScoped({ directory: rooms, prefix: "ask-" })
    )
    const place = join(yield* Effect.mapError(room, unreachable), "repo")
    const { base, commits, global, own } = yield* readBranch(place, proposer, proposal.repo)
    const [before, after] = yield* readChanges(place, repoLabel({ agent_id }), base, commit)
    const tree = yield* Effect.mapError(work.tree(place, commit), unreachable)
    const shared = yield* Effect.mapError(repos.snapshot({ global: true }, global), unreachable)
    const difference = yield* compare(runtime, agent_id, shared, before, after)
    const pending = pendingBuildText(yield* images.origin(agent_id), { commit: base, files: before })
    const names = nameFacts(shared.files, before, after)
    const facts = [...pending, `branch: ${branch}, commit ${commit}, tree ${tree}`, ...names]
    const listed = [`its commits: ${commits.length}`, ...commits.map((line) => `  ${line}`)]
    return {
      facts: { repo: { ...own, base } },
      shown: repoText(proposal, { ...own, base, difference }, facts, listed)
    } satisfies Preview
  }, Effect.scoped)

  return RepoChange.of({
    preview,
    execute: Effect.fn("RepoChange.execute")((execution, standing) =>
      steps.take(execution, standing, (opened) => branchCommit(execution, opened))
    )
  })
})
