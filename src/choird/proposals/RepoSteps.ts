/**
 * The steps of a change to an agent's repository: commit, push, build, update. The commit is the same each time it is made, and is pushed
 * only onto the commit on which the person saw it. If anything moved since, the execution fails as `CHANGED` (R54).
 */
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, Result, Schedule } from "effect"
import type { CommitId } from "#schema/Image.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { GitWork, type Identity } from "#src/choird/repos/GitWork.ts"
import { identityOf, pushProblem, RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { AgentSteps } from "./AgentSteps.ts"
import type { ProofOfApproval } from "#src/choird/approvals/ProofOfApproval.ts"
import {
  done,
  type Execution,
  type Job,
  next,
  type Next,
  PROPOSAL_RETRY_MS,
  PROPOSAL_TRIES_MAX
} from "#src/choird/approvals/Execution.ts"
import type { Standing } from "#src/choird/approvals/Execution.ts"
import { changed, type ExecutionFailed, failedAs } from "#src/choird/approvals/ExecutionFailed.ts"

/** Makes or fetches the objects of the commit in the execution's own repository. */
export type MakeCommit = (opened: Opened, identity: Identity) => Effect.Effect<CommitId, ExecutionFailed>

export class RepoSteps extends Context.Service<
  RepoSteps,
  {
    /** Takes one step, which may have been taken before choird died at any point of it. */
    take(execution: Execution, standing: Standing, makeCommit: MakeCommit): Effect.Effect<Next, ExecutionFailed>
  }
>()("choir/choird/RepoSteps") {
  static readonly layer = Layer.effect(
    RepoSteps,
    Effect.suspend(() => make())
  )
}

const NAMELESS = "choir.invalid"

export const repository = failedAs("REPOSITORY")

/** Retries while a remote briefly does not answer. */
export const retryFetch = <A, E extends { readonly _tag: string; readonly message: string }>(
  call: Effect.Effect<A, E>
) =>
  call.pipe(
    Effect.retry({
      while: ({ _tag }) => _tag === "FetchFailed",
      schedule: Schedule.spaced(PROPOSAL_RETRY_MS),
      times: PROPOSAL_TRIES_MAX
    }),
    Effect.mapError((error) => repository(error))
  )

/** Opens a repository of choird's own for one execution, and reads the remote branch. */
const makeOpen = Effect.gen(function* () {
  const access = yield* RepoAccess
  const config = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const sessions = yield* SessionStore
  const work = yield* GitWork
  return Effect.fnUntraced(function* ({ approved: { row }, facts: { repo } }: Execution) {
    const { agent_id, approval_id, session_id } = row
    const { config: running } = yield* config.current
    const own = Object.hasOwn(running.agents, agent_id) ? running.agents[agent_id]?.repo : undefined
    if (repo === undefined || own === undefined) return yield* changed("config.json no longer has this agent")
    if (own.url !== repo.url || own.ref !== repo.ref)
      return yield* changed(
        `the agent's repository is now ${own.url} at ${own.ref}, but was ${repo.url} at ${repo.ref} when this was proposed`
      )
    const checked = yield* Effect.mapError(Effect.fromResult(checkSource(own)), repository)
    // The git identity that the proposing session was bound to.
    const bound = Option.getOrUndefined(yield* databaseDefect(sessions.get(session_id)))?.resource_bindings.git_identity
    const source = yield* access(agent_id, checked, bound)
    const place = join(config.home, "repos", "work", `approval-${approval_id}`)
    yield* Effect.mapError(
      Effect.andThen(fs.makeDirectory(join(place, ".."), { recursive: true }), work.begin(place)),
      repository
    )
    const head = yield* retryFetch(work.head(place, source))
    return { place, source, base: repo.base, head, committer: identityOf(running, agent_id, bound) }
  })
})
export type Opened = Effect.Success<ReturnType<Effect.Success<typeof makeOpen>>>

const movedTo = ({ base, head, source }: Opened) =>
  changed(`${source.ref} has moved to ${head} since the person saw the change, which was based on ${base}`)

/** Digits of a commit that people read. */
const COMMIT_CHARS = 12

/** The place of the change: the repository, and an image if one was built. */
const inRepo = ({ commit, image_version }: Job) =>
  `it is in the repository as commit ${(commit ?? "").slice(0, COMMIT_CHARS)}${image_version === undefined ? "" : `, image ${image_version} was built`}`

/** The outcome of a change that the agent runs with; what a person wants to know comes first. */
const runsWith = ({ commit, image_version }: Job) =>
  `the agent runs with it (commit ${(commit ?? "").slice(0, COMMIT_CHARS)}${image_version === undefined ? "" : `, image ${image_version}`})`

const make = Effect.fnUntraced(function* () {
  const agents = yield* AgentSteps
  const open = yield* makeOpen
  const work = yield* GitWork

  /** Decides the commit and its author; nothing leaves this host. */
  const commit = Effect.fn("RepoSteps.commit")(function* (execution: Execution, makeCommit: MakeCommit) {
    const { agent_id } = execution.approved.row
    const opened = yield* open(execution)
    if (opened.head !== opened.base) return yield* movedTo(opened)
    const { email = `${agent_id}@${NAMELESS}`, name = agent_id } = opened.committer ?? {}
    const identity = { name, email }
    return { commit: yield* makeCommit(opened, identity), identity }
  })

  /** Moves the configured branch to that commit, unless it is already there. */
  const push = Effect.fn("RepoSteps.push")(function* (
    execution: Execution,
    { commit, identity }: Job,
    makeCommit: MakeCommit
  ) {
    if (commit === undefined || identity === undefined) return yield* Effect.die(new Error("nothing was committed"))
    const opened = yield* open(execution)
    const { base, head, place, source } = opened
    if (head === commit) return
    if (head !== base) return yield* movedTo(opened)
    const problem = pushProblem(source)
    if (problem !== undefined) return yield* repository({ message: problem })
    const again = yield* makeCommit(opened, identity)
    if (again !== commit) return yield* changed(`the commit would now be ${again}, but ${commit} was approved`)
    const pushed = yield* Effect.result(work.push(place, source, commit))
    if (Result.isSuccess(pushed)) return
    // The answer may have been lost, or somebody else was faster.
    const now = yield* retryFetch(work.head(place, source))
    if (now === commit) return
    return yield* now === base ? repository(pushed.failure) : movedTo({ ...opened, head: now })
  })

  const build = Effect.fnUntraced(function* (approved: ProofOfApproval, job: Job) {
    const built = { ...job, image_version: yield* agents.build(approved, job) }
    return yield* agents.afterChange(approved, built, inRepo(built))
  })

  return RepoSteps.of({
    take: Effect.fn("RepoSteps.take")(function* (
      execution,
      { job, step },
      makeCommit
    ): Effect.fn.Return<Next, ExecutionFailed> {
      const { approved, facts } = execution
      switch (step) {
        case "commit":
          return next("push", { ...job, ...(yield* commit(execution, makeCommit)) })
        case "push":
          yield* push(execution, job, makeCommit)
          return facts.is_draft === true
            ? done(`${inRepo(job)}, as a draft without a program, which a person writes`)
            : next("build", job)
        case "build":
          return yield* build(approved, job)
        case "update":
          yield* agents.update(approved, job, new Set())
          return done(runsWith(job))
        default:
          return yield* Effect.die(new Error(`a change of a repository has no step ${step}`))
      }
    })
  })
})
