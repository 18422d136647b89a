/**
 * Git as the worktrees of jobs need it: commands of the agent's sandbox without a network. The repository is an agent's to write, so nothing
 * that it configures runs: no hook, no filter, no merge driver, no monitor.
 */
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { CallId, type JobName } from "#schema/Ids.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"

/** Where the worktrees of jobs are in the workspace. */
export const WORKTREES = ".worktrees"
/** How long one git command may take; a checkout of a large repository is the longest. */
const GIT_MS_MAX = 120_000
/** Filters and merge drivers of a repository's configuration that are switched off; more are refused. */
const PROGRAMS_MAX = 64

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

type Setting = readonly [key: string, value: string]

/** Settings that keep a repository's own configuration from running anything. */
const SAFE: ReadonlyArray<Setting> = [
  ["safe.directory", "*"],
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.untrackedCache", "false"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["submodule.recurse", "false"]
]

/** Settings as git takes them from its environment: on its command line a key with `=` in it would be another key. */
const environmentOf = (settings: ReadonlyArray<Setting>): Readonly<Record<string, string>> =>
  Object.fromEntries([
    ["GIT_CONFIG_COUNT", String(settings.length)],
    ...settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value]
    ])
  ])

export interface Answer {
  readonly code: number
  readonly out: string
  readonly err: string
}

export const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")

/** The settings that switch off the programs whose keys a repository configures, or why there are too many. */
const switchedOff = (keys: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Setting>, WorktreeRefused> => {
  const named = (kind: string) => [
    ...new Set(keys.flatMap((key) => new RegExp(`^${kind}\\.(.+)\\.[^.]+$`, "u").exec(key)?.[1] ?? []))
  ]
  const [filters, drivers] = [named("filter"), named("merge")]
  if (filters.length + drivers.length > PROGRAMS_MAX)
    return Effect.fail(
      new WorktreeRefused({
        reason: `the repository configures more than ${PROGRAMS_MAX} filters and merge drivers: remove some`
      })
    )
  const off: ReadonlyArray<Setting> = [
    ...filters.flatMap((name): ReadonlyArray<Setting> => [
      [`filter.${name}.smudge`, ""],
      [`filter.${name}.clean`, ""],
      [`filter.${name}.process`, ""],
      [`filter.${name}.required`, "false"]
    ]),
    // A driver that fails leaves a conflict, which a person looks at.
    ...drivers.map((name): Setting => [`merge.${name}.driver`, "false"])
  ]
  return Effect.succeed(off)
}

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
          GIT_TERMINAL_PROMPT: "0",
          GIT_CONFIG_GLOBAL: "/dev/null",
          GIT_OPTIONAL_LOCKS: "0",
          LC_ALL: "C",
          ...environmentOf(settings)
        },
        offline: processes.cutsNetwork
      })
      .pipe(
        Effect.map(({ exit_code, stderr, stdout, timed_out }): Answer => ({
          code: timed_out ? 124 : (exit_code ?? 128),
          out: stdout.text,
          err: timed_out ? `git took longer than ${GIT_MS_MAX} ms` : stderr.text
        })),
        Effect.catch(({ message }) => Effect.succeed({ code: 127, out: "", err: message } satisfies Answer))
      )

  /** The settings that switch off the programs which the repository configures for its files, and which one of its worktrees does. */
  const programsOff = (cwd: string) =>
    Effect.flatMap(
      Effect.forEach(["--local", "--worktree"], (scope) =>
        run(cwd, ["config", scope, "--includes", "--name-only", "--get-regexp", "^(filter|merge)\\..*\\."], SAFE)
      ),
      (found) => switchedOff(found.flatMap(({ out }) => lines(out)))
    )

  return {
    root,
    programsOff: programsOff(root),
    path: (job_name: JobName) => join(root, worktreeOf(job_name)),
    /** A command that reads names and commits alone. */
    ask: (...args: ReadonlyArray<string>) => run(root, args, SAFE),
    /** A command that reads or writes files, or merges them. */
    git: (cwd: string, ...args: ReadonlyArray<string>) =>
      Effect.matchEffect(programsOff(cwd), {
        onFailure: ({ reason }) => Effect.succeed({ code: 126, out: "", err: reason } satisfies Answer),
        onSuccess: (off) => run(cwd, args, [...SAFE, ...off])
      })
  }
})
export type WorktreeGit = Effect.Success<typeof makeWorktreeGit>
