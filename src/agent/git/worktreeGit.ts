/**
 * Git as the worktrees of jobs need it: commands of the agent's sandbox without a network. The repository is an agent's to write, so nothing
 * that it configures runs (src/shared/git/safeGit.ts), and what it would fetch stays missing.
 */
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { CallId, type JobName } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import {
  asVariables,
  NAMED_KEYS,
  programsOff,
  SAFE_SETTINGS,
  safeVariables,
  type Setting
} from "#src/shared/git/safeGit.ts"
import { FILE_KEY } from "#src/shared/image/lockKey.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"

/** Where the worktrees of jobs are in the workspace. */
export const WORKTREES = ".worktrees"
/** How long one git command may take; a checkout of a large repository is the longest. */
const GIT_MS_MAX = 120_000

/** The places that git reads and writes for the worktree of a job, or for all of them: nobody else may write there meanwhile. */
export const locksOfTree = (job_name?: JobName): ReadonlyArray<LockRequest> =>
  [".git", job_name === undefined ? WORKTREES : worktreeOf(job_name)].map((path) =>
    LockRequest.make({ resource: `${FILE_KEY}${path}`, mode: "X" })
  )

/** The folder of a job's worktree, relative to the workspace. */
export const worktreeOf = (job_name: JobName): string => `${WORKTREES}/${job_name}`

/** A worktree that cannot be had, with what to do. */
export class WorktreeRefused extends Schema.TaggedError<WorktreeRefused>()("WorktreeRefused", {
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

const SETTINGS: ReadonlyArray<Setting> = [...SAFE_SETTINGS, ["safe.directory", "*"], ["core.untrackedCache", "false"]]

export interface Answer {
  /** 124 after too long a time, 127 where git cannot be started. */
  readonly code: number
  readonly out: string
  readonly err: string
  /** Whether nothing of `out` was left out. */
  readonly isWhole: boolean
}

const TIMED_OUT = 124

export const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")

export const makeWorktreeGit = Effect.gen(function* () {
  const processes = yield* ProcessRunner
  const { root } = yield* Workspace

  // Of this agent alone: what carries the id of a call is ended with it.
  const call_id = CallId.make(`git-${yield* Effect.sync(() => randomUUID())}`)

  const run = (cwd: string, args: ReadonlyArray<string>, settings: ReadonlyArray<Setting>) =>
    processes
      .run(call_id, {
        // Through a shell, since the program that takes the network away finds no command by its name.
        command: "/bin/sh",
        args: ["-c", 'exec git "$@"', "git", ...args],
        cwd,
        timeout_ms: GIT_MS_MAX,
        env: {
          ...safeVariables(),
          GIT_OPTIONAL_LOCKS: "0",
          ...asVariables(settings)
        },
        offline: processes.cutsNetwork
      })
      .pipe(
        Effect.map(({ exit_code, stderr, stdout, timed_out }): Answer => ({
          code: timed_out ? TIMED_OUT : (exit_code ?? 128),
          out: stdout.text,
          err: timed_out ? `git took longer than ${GIT_MS_MAX} ms` : stderr.text,
          isWhole: stdout.dropped === 0
        })),
        Effect.catch(({ message }) =>
          Effect.succeed({ code: 127, out: "", err: message, isWhole: true } satisfies Answer)
        )
      )

  /** The settings that switch off the programs which the repository configures by a name, and which one of its worktrees does. */
  const namedOff = Effect.fnUntraced(function* (cwd: string) {
    const found = yield* Effect.forEach(["--local", "--worktree"], (scope) =>
      run(cwd, ["config", scope, "--no-includes", "--null", "--name-only", "--get-regexp", NAMED_KEYS], SETTINGS)
    )
    // What is not known cannot be switched off.
    if (found.some(({ code, isWhole }) => code === TIMED_OUT || !isWhole))
      return yield* new WorktreeRefused({ reason: "the repository's configuration is too long: make it shorter" })
    const off = programsOff(found.flatMap(({ out }) => out.split("\0").filter((key) => key !== "")))
    if (off.type === "refused") return yield* new WorktreeRefused({ reason: off.why })
    return off.settings
  })

  return {
    root,
    namedOff: namedOff(root),
    path: (job_name: JobName) => join(root, worktreeOf(job_name)),
    /** A command that reads names and commits alone. */
    ask: (...args: ReadonlyArray<string>) => run(root, args, SETTINGS),
    /** A command that reads or writes files, or merges them. */
    git: (cwd: string, ...args: ReadonlyArray<string>) =>
      Effect.matchEffect(namedOff(cwd), {
        onFailure: ({ reason }) => Effect.succeed({ code: 126, out: "", err: reason, isWhole: true } satisfies Answer),
        onSuccess: (off) => run(cwd, args, [...SETTINGS, ...off])
      })
  }
})
export type WorktreeGit = Effect.Success<typeof makeWorktreeGit>
