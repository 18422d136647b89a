/** Looks at what a proposal would change, before a person is asked about it: in the agent's repository, or in config.json (D24). */
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, Result, Schema } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { CommitId } from "#schema/Image.ts"
import { type ProposalKind, sessionOfBranch } from "#schema/ProposedChange.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Images } from "#src/choird/images/Images.ts"
import { type ApprovalRefused, refused } from "./ApprovalRefused.ts"
import { visibleLine } from "./approvalText.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork, PROPOSAL_COMMITS_MAX } from "#src/choird/repos/GitWork.ts"
import { merge, toolNames } from "#src/choird/repos/Merge.ts"
import { pushProblem, RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { repoLabel, Repos, type Snapshot } from "#src/choird/repos/Repos.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import type { BadRepository, RepoFile, TreeEntry } from "#src/choird/repos/Tree.ts"
import type { GitFailed, GitMissing } from "#src/shared/git/git.ts"
import { CONFIG_FILE } from "#src/shared/config/configFiles.ts"
import { capabilities, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { makeKeyedLock } from "#src/shared/keyedLock.ts"
import { API_PROBLEM_CHARS_MAX } from "#src/shared/limits.ts"
import { readSkill } from "#src/shared/image/skillProblems.ts"
import { Before, editConfig, editText } from "./configEdits.ts"
import { difference, MUCH_TO_READ, muchChanged, PROPOSAL_SHOWN_CHARS_MAX } from "./differenceText.ts"
import { draftFiles, draftPaths, withFiles } from "./draftFiles.ts"
import { type Proposal, readProposal } from "./Proposal.ts"
import { configText, repoText, toolFacts } from "./proposalText.ts"
import { unbuiltText } from "./proposalNotes.ts"

/** What the execution holds against what is there then; anything else is `CHANGED` (R54). */
export const Facts = Schema.Struct({
  /** The repository and the commit that the person saw the change of. */
  repo: Schema.optionalKey(Schema.Struct({ url: Schema.String, ref: Schema.String, base: CommitId })),
  /** A tool that a person has to finish: it is committed and not built. */
  is_draft: Schema.optionalKey(Schema.Boolean),
  before: Schema.optionalKey(Schema.Array(Before))
})
export type Facts = typeof Facts.Type

export interface Examined {
  readonly facts: Facts
  /** Everything that the person reads, and all of it. */
  readonly shown: string
}

export interface Examining {
  readonly agent_id: AgentId
  readonly session_id: SessionId
  readonly kind: ProposalKind
  readonly payload: Schema.Json
}

/** Examines proposals; nothing is changed by it. */
export class ProposalFacts extends Context.Service<
  ProposalFacts,
  {
    /**
     * Refused with BAD_REQUEST where the proposal would not do, TOO_LARGE where it is more than a person reads, CHANGED where the branch
     * moved, REPOSITORY where the agent's repository cannot be looked at.
     */
    examine(proposed: Examining): Effect.Effect<Examined, ApprovalRefused>
  }
>()("choir/choird/ProposalFacts") {
  static readonly layer = Layer.effect(
    ProposalFacts,
    Effect.suspend(() => make())
  )
}

const HINT = "change the proposal, or do not go on with it"
const bad = (reason: string) => refused("BAD_REQUEST", reason.slice(0, API_PROBLEM_CHARS_MAX), HINT)
const unreachable = ({ message }: { readonly message: string }) =>
  refused("REPOSITORY", `the repository cannot be looked at: ${message}`.slice(0, API_PROBLEM_CHARS_MAX), HINT)

const tooLarge = (reason: string) => refused("TOO_LARGE", reason, "propose it in smaller parts")
const whole = (shown: string) =>
  shown.length > PROPOSAL_SHOWN_CHARS_MAX ? Effect.fail(tooLarge(MUCH_TO_READ)) : Effect.succeed(shown)

/** Paths that are not the same in two trees, with the bytes that they have in both together. */
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

const make = Effect.fnUntraced(function* () {
  const access = yield* RepoAccess
  const sessions = yield* SessionStore
  const config = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const git = yield* Git
  const repos = yield* Repos
  const work = yield* GitWork
  const images = yield* Images
  const locked = yield* makeKeyedLock
  const { type: runtime } = yield* ContainerRuntime
  const rooms = join(config.home, "repos", "work")

  /** Where an approved change would go, with the credentials that it would be brought there with. */
  const sources = Effect.fnUntraced(function* ({ agent_id, session_id }: Examining) {
    const { config: running } = yield* config.current
    const agent = Object.hasOwn(running.agents, agent_id) ? running.agents[agent_id] : undefined
    if (agent === undefined) return yield* bad(`config.json has no agent ${agent_id} any more`)
    const checked = yield* Effect.mapError(Effect.fromResult(checkSource(agent.repo)), unreachable)
    const session = Option.getOrUndefined(yield* databaseDefect(sessions.get(session_id)))
    const git_identity = session?.resource_bindings.git_identity
    const source = yield* access(agent_id, checked, git_identity)
    const problem = pushProblem(source)
    if (problem !== undefined) return yield* refused("REPOSITORY", problem, HINT)
    return { own: agent.repo, source, git_identity, global: running.global_repo, network: running.runtime.network }
  })
  type Sources = Effect.Success<ReturnType<typeof sources>>

  /** The whole change, after an image of it was found to be sound. */
  const compare = Effect.fnUntraced(function* (
    agent_id: AgentId,
    global: Snapshot,
    before: ReadonlyArray<RepoFile>,
    after: ReadonlyArray<RepoFile>
  ) {
    const plan = merge(
      { label: repoLabel({ global: true }), files: global.files },
      { label: repoLabel({ agent_id }), files: after },
      capabilities(runtime)
    )
    if (Result.isFailure(plan)) return yield* bad(plan.failure.message)
    const found = difference(before, after)
    if (Result.isFailure(found))
      return yield* found.failure.type === "large"
        ? tooLarge(found.failure.reason)
        : bad(`${found.failure.path} is no text, and nobody could read it`)
    return found.success.paths.length === 0 ? yield* bad("it would change nothing") : found.success
  })

  const draft = Effect.fnUntraced(function* (
    proposed: Examining,
    proposal: Extract<Proposal, { kind: "tool" | "skill" }>
  ) {
    const { agent_id } = proposed
    const { git_identity, global, network, own } = yield* sources(proposed)
    const replaced = draftPaths(proposal)
    const held = (path: string) => replaced.has(path)
    const now = yield* Effect.mapError(repos.snapshot({ agent_id, git_identity }, own, { held }), unreachable)
    const shared = yield* Effect.mapError(repos.snapshot({ global: true }, global), unreachable)
    const drafted = draftFiles(proposal, now.files)
    if (Result.isFailure(drafted)) return yield* bad(drafted.failure)
    const { files, isDraft } = drafted.success
    if (proposal.kind === "skill") {
      const { name, skill } = proposal
      const tools = toolNames(
        { label: repoLabel({ global: true }), files: shared.files },
        { label: repoLabel({ agent_id }), files: now.files },
        capabilities(runtime)
      )
      const read = readSkill(name, JSON.stringify(skill.spec), tools)
      if (Result.isFailure(read)) return yield* bad(`the skill ${name} cannot run. ${read.failure.join("; ")}`)
    }
    const changed = yield* compare(agent_id, shared, now.files, withFiles(now.files, files))
    const unbuilt = unbuiltText(yield* images.origin(agent_id), now)
    const isGlobal = shared.files.some(({ path }) => path === files.at(-1)?.path)
    const facts = [
      ...(isDraft ? [] : unbuilt),
      ...(proposal.kind === "tool" ? toolFacts(proposal, isDraft, { runtime, network }) : []),
      ...(isGlobal ? [`It stands for the global ${proposal.kind} of its name.`] : [])
    ]
    const told = { ...own, base: now.commit, difference: changed }
    return {
      facts: { repo: { ...own, base: now.commit }, ...(isDraft ? { is_draft: true } : {}) },
      shown: repoText(proposal, told, facts)
    } satisfies Examined
  })

  const branchFacts = Effect.fnUntraced(function* (
    place: string,
    { global, own, source }: Sources,
    agent_id: AgentId,
    proposal: Extract<Proposal, { kind: "repo_change" }>
  ) {
    const { branch, commit } = proposal.repo
    const { ref } = yield* Effect.mapError(Effect.fromResult(checkSource({ url: own.url, ref: branch })), unreachable)
    const looked = Effect.gen(function* () {
      yield* work.begin(place)
      const base = yield* work.head(place, source)
      const tip = yield* work.branch(place, { ...source, ref })
      return { base, tip, commits: yield* work.ahead(place, base, tip) }
    })
    const { base, commits, tip } = yield* Effect.mapError(looked, unreachable)
    if (tip !== commit)
      return yield* refused("CHANGED", `the newest commit of ${branch} is ${tip}`, "propose that one, if it is meant")
    if (Option.isNone(commits))
      return yield* bad(
        `${branch} does not hold the commit ${base} of ${own.ref}, or is more than ${PROPOSAL_COMMITS_MAX} commits ahead: rebase it, push it, and propose it again`
      )
    if (commits.value.length > PROPOSAL_COMMITS_MAX)
      return yield* bad(`${branch} has more than ${PROPOSAL_COMMITS_MAX} commits: make them fewer`)
    const label = repoLabel({ agent_id })
    const asRefusal = <A>(read: Effect.Effect<A, GitMissing | GitFailed | BadRepository>) =>
      Effect.mapError(read, (error) => (error._tag === "BadRepository" ? bad(error.message) : unreachable(error)))
    // The listings alone tell how much would have to be read: a few kilobytes that were pushed may unpack to hundreds of megabytes.
    const trees = [asRefusal(git.tree(place, base, label)), asRefusal(git.tree(place, commit, label))] as const
    const changes = changedEntries(...(yield* Effect.all(trees)))
    // They name programs that git runs on a checkout, with the settings of the person who checks out.
    const attributes = [...changes.paths].find((path) => /(?:^|\/)\.gitattributes$/iu.test(path))
    if (attributes !== undefined)
      return yield* bad(`${visibleLine(attributes)} says which programs git runs on a checkout: leave it out`)
    const much = muchChanged(changes.bytes)
    if (much !== undefined) return yield* tooLarge(much)
    const held = (path: string) => changes.paths.has(path)
    const filesOf = (id: CommitId) => asRefusal(git.files(place, id, label, { held }))
    const [before, after] = yield* Effect.all([filesOf(base), filesOf(commit)])
    const tree = yield* Effect.mapError(work.tree(place, commit), unreachable)
    const shared = yield* Effect.mapError(repos.snapshot({ global: true }, global), unreachable)
    const changed = yield* compare(agent_id, shared, before, after)
    const unbuilt = unbuiltText(yield* images.origin(agent_id), { commit: base, files: before })
    const facts = [...unbuilt, `branch: ${branch}, commit ${commit}, tree ${tree}`]
    const listed = [`its commits: ${commits.value.length}`, ...commits.value.map((line) => `  ${line}`)]
    return {
      facts: { repo: { ...own, base } },
      shown: repoText(proposal, { ...own, base, difference: changed }, facts, listed)
    } satisfies Examined
  })

  const branch = Effect.fnUntraced(function* (
    proposed: Examining,
    proposal: Extract<Proposal, { kind: "repo_change" }>
  ) {
    const { agent_id, session_id } = proposed
    const own = yield* sources(proposed)
    if (sessionOfBranch(proposal.repo.branch) !== session_id)
      return yield* bad(`the branch is another session's: it has to begin with proposal/${session_id}/`)
    const room = Effect.andThen(
      fs.makeDirectory(rooms, { recursive: true, mode: 0o700 }),
      fs.makeTempDirectoryScoped({ directory: rooms, prefix: "ask-" })
    )
    const folder = yield* Effect.mapError(room, unreachable)
    return yield* branchFacts(join(folder, "repo"), own, agent_id, proposal)
  }, Effect.scoped)

  const edits = Effect.fnUntraced(function* (
    agent_id: AgentId,
    proposal: Extract<Proposal, { kind: "config_change" }>
  ) {
    const text = yield* Effect.mapError(fs.readFileString(join(config.home, CONFIG_FILE)), unreachable)
    const edited = Effect.try({
      try: () => editConfig(agent_id, text, proposal.edits),
      catch: () => bad("config.json is not valid JSON at the moment")
    })
    const made = yield* edited
    if (Result.isFailure(made)) return yield* bad(made.failure)
    const { before } = made.success
    const lines = proposal.edits.map((edit, index) => editText(edit, before[index] ?? { path: [] }))
    return { facts: { before }, shown: configText(proposal, lines) } satisfies Examined
  })

  return ProposalFacts.of({
    examine: Effect.fn("ProposalFacts.examine")(function* (proposed) {
      const { agent_id, kind, payload } = proposed
      const read = readProposal(kind, payload)
      if (Result.isFailure(read)) return yield* bad(read.failure)
      const proposal = read.success
      const look: Effect.Effect<Examined, ApprovalRefused> =
        proposal.kind === "config_change"
          ? edits(agent_id, proposal)
          : proposal.kind === "repo_change"
            ? branch(proposed, proposal)
            : draft(proposed, proposal)
      // An agent that proposes much keeps one git busy and no more.
      const found = yield* locked(agent_id)(look)
      return { ...found, shown: yield* whole(found.shown) }
    })
  })
})
