/** The place where an agent works, as its models read it. What commands may change of it is looked at for each call. */
import { constants, stat, type Stats } from "node:fs"
import { open } from "node:fs/promises"
import { Clock, Context, Effect, Layer } from "effect"

/** The texts of an environment, as a model reads them. */
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
>()("choir/agent/Environment") {
  static readonly layer = (options: { readonly workspace: string; readonly shell: string }) =>
    Layer.sync(Environment, () => {
      const time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone
      const os = `${process.platform} ${process.arch}`
      const today = dayIn(time_zone)
      const look = makeLook(options.workspace)
      return Environment.of({
        text: (model) => Effect.flatMap(look, (seen) => textOf({ ...options, ...seen, os, time_zone }, model, today))
      })
    })
}

const MINUTE_MS = 60_000

const dayIn = (time_zone: string): ((ms: number) => string) => {
  const day = new Intl.DateTimeFormat("en-CA", { timeZone: time_zone, dateStyle: "short" })
  const name = new Intl.DateTimeFormat("en-US", { timeZone: time_zone, weekday: "long" })
  let minute = Number.NaN
  let text = ""
  // No zone changes its day within a minute, and every call asks.
  return (ms) => {
    const now = Math.floor(ms / MINUTE_MS)
    if (now !== minute) {
      minute = now
      text = `${name.format(ms)}, ${day.format(ms)}`
    }
    return text
  }
}

const textOf = (place: Place, model: string, today: (ms: number) => string) => {
  const { git, hasAgentsFile, os, shell, time_zone, workspace } = place
  return Effect.map(Clock.currentTimeMillis, (now) =>
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
}

/** An environment of a known place. */
export const ofPlace = (place: Place) => {
  const today = dayIn(place.time_zone)
  return Environment.of({ text: (model) => textOf(place, model, today) })
}

/** Characters of a branch's name that models read. */
const BRANCH_CHARS_MAX = 200

/** `HEAD` of a work tree, whose `.git` is a folder, or a file that names one. */
const branchOf = (head: string): string => {
  const branch = /^ref: refs\/heads\/(\S+)/u.exec(head)?.[1]
  return branch === undefined ? "no branch is checked out" : `branch ${branch.slice(0, BRANCH_CHARS_MAX)}`
}

/** Bytes of a file of git that are read. */
const HEAD_BYTES_MAX = 4096

/** The beginning of a regular file; empty for everything else. Commands may have put a pipe or a huge file in its place. */
const beginningOf = async (path: string): Promise<string> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!(await file.stat()).isFile()) return ""
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES_MAX), 0, HEAD_BYTES_MAX, 0)
    return buffer.toString("utf8", 0, bytesRead)
  } finally {
    await file.close()
  }
}

const beginningOrNothing = (path: string): Promise<string> => beginningOf(path).catch(() => "")

/** The facts of a path; nothing where it leads nowhere, since most workspaces lack one of these files, and an error costs more than the look. */
const statOf = (path: string): Promise<Stats | undefined> =>
  new Promise((resolve) => stat(path, (error, found) => resolve(error === null ? found : undefined)))

/** A file that another one replaced, or that was written to, is another version. */
const versionOf = ({ ctimeMs, ino, mtimeMs, size }: Stats): string => [ino, size, mtimeMs, ctimeMs].join(" ")

const readGit = async (git: string): Promise<string> => {
  const folder = /^gitdir: (\S+)/u.exec(await beginningOrNothing(git))?.[1] ?? git
  return branchOf(await beginningOrNothing(`${folder}/HEAD`))
}

/** Looks at a workspace for each call. Mostly `.git` is a folder, whose HEAD is only read again when it changed. */
const makeLook = (workspace: string) => {
  const git = `${workspace}/.git`
  let known: { readonly version: string; readonly text: string } | undefined
  const branch = async (): Promise<string> => {
    const head = known === undefined ? undefined : await statOf(`${git}/HEAD`)
    if (known !== undefined && head !== undefined && versionOf(head) === known.version) return known.text
    known = undefined
    const found = await statOf(git)
    if (found === undefined) return "not a repository"
    if (!found.isDirectory()) return await readGit(git)
    // Before it is read, so that a change meanwhile is seen by the next call.
    const before = await statOf(`${git}/HEAD`)
    const text = branchOf(await beginningOrNothing(`${git}/HEAD`))
    if (before !== undefined) known = { version: versionOf(before), text }
    return text
  }
  return Effect.promise(async () => {
    const [text, agents] = await Promise.all([branch(), statOf(`${workspace}/AGENTS.md`)])
    return { git: text, hasAgentsFile: agents !== undefined }
  })
}
