/** The git worktrees of jobs that work on a branch of their own, `.worktrees/<job>` in the workspace. */
import { access, lstat, mkdir, readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Result, Schema, Semaphore } from "effect"
import type { JobTree } from "#schema/Core.ts"
import { coreLane, JobName, type LaneId } from "#schema/Ids.ts"
import { WORKSPACE } from "#src/shared/session/jobText.ts"
import { isPlainName, oneLine, plainName } from "#src/shared/text/foreignText.ts"
import {
  type Answer,
  lines,
  makeWorktreeGit,
  type WorktreeGit,
  worktreeOf,
  WorktreeRefused,
  WORKTREES
} from "./worktreeGit.ts"

/** Worktrees of ended jobs that a start of the agent looks at. */
const LEFT_MAX = 256
/** For how long an agent that starts waits to hear whether its workspace is a repository. */
const OFFERED_MS_MAX = 5000
/** Paths of a conflict in the event, and characters of each. */
const CONFLICT_PATHS_MAX = 8
const PATH_CHARS_MAX = 200
/** Other jobs' branches that a job's is compared with. */
const COMPARED_MAX = 16

/** A job with the branch that it works on. */
export interface TreeJob {
  readonly job_name: JobName
  readonly branch: string
}

interface Methods {
  /** Whether the workspace was a repository when the agent started, so that jobs may be offered a branch. */
  readonly offered: boolean
  /** Fails where no job can begin so. It changes nothing. */
  check(job: TreeJob): Effect.Effect<void, WorktreeRefused>
  /** Makes the worktree of a job and its branch, from what the workspace has checked out; one that is there already stays. */
  open(job: TreeJob): Effect.Effect<void, WorktreeRefused>
  /** The work that a job leaves: its commits, what is not committed, and the files in which its branch and others changed the same lines. */
  look(job: TreeJob, others: ReadonlyArray<TreeJob>): Effect.Effect<JobTree | undefined>
  /** The folder in which the open worktree of a lane's job lies. */
  of(lane: LaneId): string | undefined
  /** Removes a worktree that holds nothing uncommitted; its branch stays. */
  close(job_name: JobName): Effect.Effect<void>
  /** Does so for all jobs but these. */
  sweep(running: ReadonlySet<string>): Effect.Effect<void>
}

const refuse = (reason: string) => Effect.fail(new WorktreeRefused({ reason }))

const noGit = refuse("this agent cannot run commands, so no job can have a branch: leave branch out")
const none: Methods = {
  offered: false,
  check: () => noGit,
  open: () => noGit,
  look: () => Effect.as(Effect.void, undefined),
  of: () => undefined,
  close: () => Effect.void,
  sweep: () => Effect.void
}

/** The worktrees of an agent's jobs; agents that run no commands have none. */
export const Worktrees = Context.Reference<Methods>("choir/agent/git/Worktrees", { defaultValue: () => none })

/** The codes of a failure that Choir words itself: git took too long, was not allowed, or could not be started. */
const OWN_CODES: ReadonlySet<number> = new Set([124, 126, 127])

/** A failure of git's. Its own words repeat what stands in files of the repository, so that the agent's log alone has them. */
const failureOf = ({ code, err }: Answer): string =>
  OWN_CODES.has(code) ? err.slice(0, PATH_CHARS_MAX) : `git ended with exit code ${code}; the agent's log has its words`

/** A worktree as others may read of it: its path is what a file of the repository says. */
const placeOf = (path: string, root: string): string => {
  const inside = path.startsWith(`${root}/`) ? path.slice(root.length + 1) : ""
  const job = inside.startsWith(`${WORKTREES}/`) ? inside.slice(WORKTREES.length + 1) : ""
  return isPlainName(job) ? `${WORKTREES}/${plainName(job, "")}` : "another worktree"
}

/** The worktrees that git knows, by path: the branch of each, and whether making it was cut off. */
const knownTrees = ({ ask }: WorktreeGit) =>
  Effect.map(ask("worktree", "list", "--porcelain"), ({ out }) => {
    const entries = out.split("\n\n").map((block) => {
      const value = (key: string) =>
        lines(block)
          .find((line) => line.startsWith(`${key} `))
          ?.slice(key.length + 1)
      return {
        path: value("worktree") ?? "",
        branch: value("branch")?.replace(/^refs\/heads\//u, ""),
        isHalf: value("locked") === "initializing"
      }
    })
    return new Map(entries.map((entry) => [entry.path, entry]))
  })

/** Whether a path is there, asked of no thread of the agent's own: a workspace may be on a file system that does not answer. */
const exists = (path: string) =>
  Effect.promise(() =>
    access(path).then(
      () => true,
      () => false
    )
  )

const isFolder = (path: string) =>
  Effect.promise(() =>
    lstat(path).then(
      (found) => found.isDirectory(),
      () => false
    )
  )

/** The mode of a repository within a repository in git's index. */
const GITLINK = "160000 "

/**
 * How much in a worktree is not committed: changed files, and the repositories in it. Git is kept from looking into those, since it would
 * do so with their own configuration, which may name programs to run; they count as changed.
 */
const uncommitted = ({ git, path }: WorktreeGit, job_name: JobName) =>
  Effect.gen(function* () {
    const tree = path(job_name)
    const status = yield* git(tree, "status", "--porcelain", "--untracked-files=all", "--ignore-submodules=all")
    const index = yield* git(tree, "ls-files", "--stage", "-z")
    const links = index.out.split("\0").flatMap((entry) => {
      const [head = "", name = ""] = entry.split("\t")
      return head.startsWith(GITLINK) ? [name] : []
    })
    const nested = yield* Effect.filter(links, (name) => exists(join(tree, name, ".git")))
    return { isKnown: status.code === 0 && index.code === 0, count: lines(status.out).length + nested.length }
  })

const isClean = (repository: WorktreeGit, job_name: JobName) =>
  Effect.map(uncommitted(repository, job_name), ({ count, isKnown }) => isKnown && count === 0)

/** Fails where the workspace is not a repository of its own with a commit, or git takes no such branch. */
const checkRepository = Effect.fnUntraced(function* ({ ask, root }: WorktreeGit, branch: string) {
  const top = yield* ask("rev-parse", "--show-toplevel")
  if (top.code === 127) return yield* refuse("there is no git here, so no job can have a branch: leave branch out")
  if (top.code !== 0 || top.out.trim() !== root)
    return yield* refuse(
      "the workspace is not a git repository, so no job can have a branch: leave branch out, or run git init and commit first"
    )
  // The locks of a worktree are on the files there, and a link would lead to others.
  if (!(yield* isFolder(join(root, ".git"))))
    return yield* refuse("the .git of the workspace is not a folder, so no job can have a branch: leave branch out")
  if ((yield* ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")).code !== 0)
    return yield* refuse("the repository has no commit yet: commit first, or leave branch out")
  if ((yield* ask("check-ref-format", "--branch", branch)).code !== 0)
    return yield* refuse(`git does not accept the branch name ${branch}: choose another`)
})

const check = Effect.fnUntraced(function* (repository: WorktreeGit, { branch, job_name }: TreeJob) {
  const { namedOff, path, root } = repository
  yield* checkRepository(repository, branch)
  yield* namedOff
  const trees = yield* knownTrees(repository)
  const mine = trees.get(path(job_name))
  const holder = [...trees.values()].find((tree) => tree.branch === branch && tree.path !== path(job_name))
  if (holder !== undefined)
    return yield* refuse(
      holder.path === root
        ? `the branch ${branch} is checked out in the workspace: choose another name for the job's branch`
        : `the branch ${branch} is checked out in ${placeOf(holder.path, root)}: choose another, or wait for its job to end`
    )
  if (mine !== undefined && !mine.isHalf && mine.branch !== branch && !(yield* isClean(repository, job_name)))
    return yield* refuse(
      `${worktreeOf(job_name)} holds uncommitted work of an earlier job: commit or remove it, or choose another job_name`
    )
  if (mine === undefined && (yield* exists(path(job_name))))
    return yield* refuse(`${worktreeOf(job_name)} exists and is not a worktree: remove it, or choose another job_name`)
})

const add = Effect.fnUntraced(function* ({ ask, git, path, root }: WorktreeGit, { branch, job_name }: TreeJob) {
  yield* git(root, "worktree", "remove", "--force", "--force", path(job_name))
  yield* ask("worktree", "prune")
  yield* Effect.promise(() => mkdir(join(root, WORKTREES), { recursive: true }))
  // So that the repository around them never takes them for its own files.
  yield* Effect.promise(() => writeFile(join(root, WORKTREES, ".gitignore"), "*\n"))
  const known = yield* ask("rev-parse", "--verify", "--quiet", `refs/heads/${branch}^{commit}`)
  const added = yield* known.code === 0
    ? git(root, "worktree", "add", "--quiet", path(job_name), branch)
    : git(root, "worktree", "add", "--quiet", "--no-track", "-b", branch, path(job_name), "HEAD")
  if (added.code === 0) return
  yield* Effect.logWarning("git could not make a worktree", oneLine(added.err))
  return yield* refuse(`git could not make a worktree: ${failureOf(added)}`)
})

const open = Effect.fnUntraced(function* (repository: WorktreeGit, job: TreeJob) {
  const path = repository.path(job.job_name)
  yield* check(repository, job)
  const mine = (yield* knownTrees(repository)).get(path)
  const isOpen = mine?.isHalf === false && mine.branch === job.branch && (yield* exists(path))
  if (!isOpen) yield* add(repository, job)
})

/** The files that two commits changed in ways which do not fit together; empty where git finds none. */
const conflicts = ({ git, root }: WorktreeGit, mine: string, theirs: string) =>
  Effect.map(git(root, "merge-tree", "--write-tree", "--name-only", "--no-messages", theirs, mine), ({ code, out }) =>
    code === 1
      ? [...new Set(lines(out).slice(1))]
          .slice(0, CONFLICT_PATHS_MAX)
          .map((name) => name.slice(0, PATH_CHARS_MAX).toWellFormed())
      : []
  )

const look = Effect.fnUntraced(function* (
  repository: WorktreeGit,
  { branch, job_name }: TreeJob,
  others: ReadonlyArray<TreeJob>
) {
  const { ask } = repository
  const head = yield* ask("rev-parse", "--verify", "--quiet", `refs/heads/${branch}^{commit}`)
  if (head.code !== 0) return undefined
  const commits = yield* ask("rev-list", "--count", `HEAD..refs/heads/${branch}`)
  const { count } = yield* uncommitted(repository, job_name)
  const against = [
    { name: WORKSPACE, commit: "HEAD" },
    ...others.slice(0, COMPARED_MAX).map((other) => ({ name: other.branch, commit: `refs/heads/${other.branch}` }))
  ]
  const found = yield* Effect.forEach(against, ({ commit, name }) =>
    Effect.map(conflicts(repository, `refs/heads/${branch}`, commit), (paths) => ({ with: name, paths }))
  )
  return {
    branch,
    commit: head.out.trim().slice(0, 64),
    commits: Number.parseInt(commits.out, 10) || 0,
    uncommitted: count,
    conflicts: found.filter(({ paths }) => paths.length > 0)
  } satisfies JobTree
})

const close = Effect.fnUntraced(function* (repository: WorktreeGit, job_name: JobName) {
  const { ask, git, root } = repository
  const path = repository.path(job_name)
  const mine = (yield* knownTrees(repository)).get(path)
  if (mine === undefined) return
  if (mine.isHalf || !(yield* exists(path))) yield* git(root, "worktree", "remove", "--force", "--force", path)
  else if (yield* isClean(repository, job_name)) yield* git(root, "worktree", "remove", path)
  yield* ask("worktree", "prune")
})

const named = Schema.decodeUnknownResult(JobName)
/** The jobs that have a folder among the worktrees. */
const jobsWithTrees = (root: string): Effect.Effect<ReadonlyArray<JobName>> =>
  Effect.map(
    Effect.promise(() => readdir(join(root, WORKTREES)).catch(() => [])),
    (names) =>
      names.slice(0, LEFT_MAX).flatMap((name) => {
        const job_name = named(name)
        return Result.isSuccess(job_name) ? [job_name.success] : []
      })
  )

const make = Effect.gen(function* () {
  const repository = yield* makeWorktreeGit
  const { root } = repository
  const opened = new Map<LaneId, string>()
  // Git's own locks fail at once; one command at a time waits instead.
  const alone = (yield* Semaphore.make(1)).withPermits(1)
  const forget = (job_name: JobName) => Effect.sync(() => void opened.delete(coreLane(job_name)))
  return {
    offered: yield* Effect.timeoutOrElse(exists(join(root, ".git")), {
      duration: OFFERED_MS_MAX,
      orElse: () => Effect.succeed(false)
    }),
    check: (job) => alone(check(repository, job)),
    open: (job) =>
      Effect.andThen(
        alone(open(repository, job)),
        Effect.sync(() => void opened.set(coreLane(job.job_name), worktreeOf(job.job_name)))
      ),
    look: (job, others) => alone(look(repository, job, others)),
    of: (lane) => opened.get(lane),
    close: (job_name) => Effect.andThen(forget(job_name), alone(close(repository, job_name))),
    sweep: (running) =>
      alone(
        Effect.flatMap(jobsWithTrees(root), (names) =>
          Effect.forEach(
            names.filter((name) => !running.has(name)),
            (job_name) => close(repository, job_name),
            { discard: true }
          )
        )
      )
  } satisfies Methods
})

export const layerWorktrees = Layer.effect(Worktrees, make)
