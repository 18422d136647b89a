/** The place where an agent works, as its models read it. It is looked at once, at the agent's start. */
import { Clock, Context, Effect, FileSystem, Layer } from "effect"

/** The parts of an environment that a session's start fixes; they are texts for a model. */
export interface Place {
  readonly workspace: string
  /** The branch that is checked out, or why there is none. */
  readonly git: string
  readonly os: string
  readonly shell: string
  readonly time_zone: string
  /** The workspace has instructions of its own for agents. */
  readonly hasAgentsFile: boolean
}

/** Describes the environment. */
export class Environment extends Context.Service<
  Environment,
  {
    /** As a lane's next call shows it: the place, the model behind the lane, and the day. */
    text(model: string): Effect.Effect<string>
  }
>()("choir/agent/model/prompt/Environment") {
  static readonly layer = (options: { readonly workspace: string; readonly shell: string }) =>
    Layer.effect(Environment, Effect.map(look(options), ofPlace))
}

const dayIn = (time_zone: string): ((ms: number) => string) => {
  const day = new Intl.DateTimeFormat("en-CA", { timeZone: time_zone, dateStyle: "short" })
  const name = new Intl.DateTimeFormat("en-US", { timeZone: time_zone, weekday: "long" })
  return (ms) => `${name.format(ms)}, ${day.format(ms)}`
}

/** An environment of a known place. */
export const ofPlace = (place: Place) => {
  const { git, hasAgentsFile, os, shell, time_zone, workspace } = place
  const today = dayIn(time_zone)
  return Environment.of({
    text: (model) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        [
          `workspace: ${workspace}`,
          ...(hasAgentsFile ? ["instructions of the workspace: AGENTS.md (read it before you change anything)"] : []),
          `git: ${git}`,
          `system: ${os}`,
          `shell: ${shell}`,
          `model: ${model}`,
          `today: ${today(now)} (${time_zone})`
        ].join("\n")
      )
  })
}

/** Characters of a branch's name that models read. */
const BRANCH_CHARS_MAX = 200

/** `HEAD` of a work tree, whose `.git` is a folder, or a file that names one. */
const branchOf = (head: string): string => {
  const branch = /^ref: refs\/heads\/(\S+)/u.exec(head)?.[1]
  return branch === undefined ? "no branch is checked out" : `branch ${branch.slice(0, BRANCH_CHARS_MAX)}`
}

const look = Effect.fnUntraced(function* ({
  shell,
  workspace
}: {
  readonly workspace: string
  readonly shell: string
}) {
  const fs = yield* FileSystem.FileSystem
  const git = `${workspace}/.git`
  const pointed = Effect.map(fs.readFileString(git), (text) => /^gitdir: (\S+)/u.exec(text)?.[1] ?? git)
  const folder = yield* Effect.orElseSucceed(pointed, () => git)
  const isRepository = yield* Effect.orElseSucceed(fs.exists(git), () => false)
  const head = yield* Effect.orElseSucceed(fs.readFileString(`${folder}/HEAD`), () => "")
  const hasAgentsFile = yield* Effect.orElseSucceed(fs.exists(`${workspace}/AGENTS.md`), () => false)
  return {
    workspace,
    git: isRepository ? branchOf(head) : "not a repository",
    os: `${process.platform} ${process.arch}`,
    shell,
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    hasAgentsFile
  } satisfies Place
})
