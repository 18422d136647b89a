/**
 * The contents of a workspace, for a backup. Agents may write there meanwhile and may be hostile: every folder is opened below the one
 * before it and no link is followed, whatever is swapped for one.
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readlinkSync } from "node:fs"
import { resolve } from "node:path"
import { Effect } from "effect"
import type { Config } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { type CommandFailed, failed } from "#src/choirctl/terminal/failure.ts"
import { codeOf, descriptorPath, openFolder } from "#src/shared/files/nofollow.ts"
import { plural } from "#src/shared/text/counts.ts"
import type { Archive } from "./ArchiveWriter.ts"
import { isRelativePath, WORKSPACE_ENTRIES_MAX, workspaceMember, WORKSPACES_BYTES_MAX } from "./manifest.ts"

/** Folders of a home that Choir fills. Git runs hooks from one of them, and choird trusts what is in the others. */
const CHOIRS_OWN = new Set([
  "sources",
  "data",
  "socks",
  "images",
  "repos",
  "logs",
  "archive",
  "metrics.token",
  "backup.lock",
  "choird.lock",
  "files.lock"
])

/** The path of a workspace below its home; nothing for one that lies elsewhere. */
export const pathInHome = (path: string, home: string) => {
  const absolute = resolve(path)
  const relative = absolute.startsWith(`${home}/`) ? absolute.slice(home.length + 1) : undefined
  return relative !== undefined && isRelativePath(relative) ? relative : undefined
}

/**
 * A workspace in a folder whose files Choir or git acts on. Its contents come from an agent, or from those who made the backup, and would
 * be run or trusted there.
 */
export const misplacedWorkspace = ({ workspaces }: Config, home: string) => {
  for (const [name, { path }] of Object.entries(workspaces)) {
    const names = pathInHome(path, home)?.split("/") ?? []
    if (names.some((part) => part.toLowerCase() === ".git")) return { name, path, owner: "git" } as const
    if (CHOIRS_OWN.has(names[0] ?? "")) return { name, path, owner: "Choir" } as const
  }
  return undefined
}

const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const DEPTH_MAX = 200
/** Errors of one entry that keep it out of the backup, and nothing else: it is gone, is something else by now, or is not ours to read. */
const PASSING = new Set(["ENOENT", "ELOOP", "EACCES", "EPERM", "ENOTDIR", "ENXIO"])

/** Entries and bytes taken from all workspaces so far, for the limits of a backup. */
export interface Taken {
  entries: number
  bytes: number
}

interface Walk {
  readonly archive: Archive
  readonly name: ResourceName
  readonly taken: Taken
  readonly skipped: Map<string, number>
}

const SPECIAL = "sockets, pipes and devices"
const UNREADABLE = "that could not be read"
const UNNAMED = "with names that are not printable UTF-8"
const CHANGED = "that changed while they were read (kept as they were found)"
const DEEP = `deeper than ${DEPTH_MAX} folders`

const skip = ({ skipped }: Walk, why: string) => Effect.sync(() => void skipped.set(why, (skipped.get(why) ?? 0) + 1))

const count = Effect.fnUntraced(function* ({ name, taken }: Walk, bytes: number) {
  taken.entries += 1
  taken.bytes += bytes
  if (taken.entries <= WORKSPACE_ENTRIES_MAX && taken.bytes <= WORKSPACES_BYTES_MAX) return
  return yield* failed(
    "WORKSPACES_TOO_LARGE",
    `the workspaces up to ${name} hold more than ${WORKSPACE_ENTRIES_MAX} files or ${WORKSPACES_BYTES_MAX / 1024 ** 3} GiB`,
    "run choirctl backup without --workspaces and copy the workspaces yourself, or delete what they do not need"
  )
})

/** Opens something for as long as `use` works on it. What cannot be opened for a passing reason is left out. */
const opened = <A, E, R>(walk: Walk, open: () => number, use: (descriptor: number) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      try {
        return open()
      } catch (error) {
        if (PASSING.has(codeOf(error) ?? "")) return undefined
        throw error
      }
    }),
    (descriptor) => (descriptor === undefined ? Effect.asVoid(skip(walk, UNREADABLE)) : Effect.asVoid(use(descriptor))),
    (descriptor) => Effect.sync(() => (descriptor === undefined ? undefined : closeSync(descriptor)))
  )

const takeFile = (walk: Walk, parent: number, name: string, path: string) =>
  opened(
    walk,
    () => openSync(`${descriptorPath(parent)}/${name}`, FILE),
    Effect.fnUntraced(function* (descriptor) {
      const stat = fstatSync(descriptor)
      if (!stat.isFile()) return yield* skip(walk, SPECIAL)
      yield* count(walk, stat.size)
      const file = { descriptor, bytes: stat.size, mode: stat.mode & 0o777, mtime: stat.mtime }
      const { exact } = yield* walk.archive.open(workspaceMember(walk.name, path), file)
      if (!exact) yield* skip(walk, CHANGED)
    })
  )

const takeLink = Effect.fnUntraced(function* (walk: Walk, parent: number, name: string, path: string) {
  const target = yield* Effect.option(Effect.try(() => readlinkSync(`${descriptorPath(parent)}/${name}`)))
  if (target._tag === "None" || target.value === "") return yield* skip(walk, UNREADABLE)
  yield* count(walk, 0)
  yield* walk.archive.link(workspaceMember(walk.name, path), target.value, new Date(0))
})

const takeFolder = Effect.fnUntraced(function* (
  walk: Walk,
  folder: number,
  path: string,
  depth: number
): Effect.fn.Return<void, CommandFailed> {
  if (depth > DEPTH_MAX) return yield* skip(walk, DEEP)
  const entries = readdirSync(descriptorPath(folder), { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const below = path === "" ? entry.name : `${path}/${entry.name}`
    if (!isRelativePath(below) || below.includes("\uFFFD")) yield* skip(walk, UNNAMED)
    else if (entry.isSymbolicLink()) yield* takeLink(walk, folder, entry.name, below)
    else if (entry.isFile()) yield* takeFile(walk, folder, entry.name, below)
    else if (!entry.isDirectory()) yield* skip(walk, SPECIAL)
    else
      yield* opened(
        walk,
        () => openFolder(folder, [entry.name], { create: false }),
        Effect.fnUntraced(function* (descriptor) {
          yield* count(walk, 0)
          yield* walk.archive.folder(workspaceMember(walk.name, below), fstatSync(descriptor).mtime)
          yield* takeFolder(walk, descriptor, below, depth + 1)
        })
      )
  }
})

/** Adds everything in a workspace to the archive, and answers what was left out of it, in words. */
export const addWorkspace = Effect.fn("workspaceFiles.add")(function* (
  archive: Archive,
  name: ResourceName,
  folder: string,
  taken: Taken
) {
  const before = { ...taken }
  const walk: Walk = { archive, name, taken, skipped: new Map() }
  yield* opened(
    walk,
    () => openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW),
    (descriptor) => takeFolder(walk, descriptor, "", 1)
  )
  return {
    contents: { name, entries: taken.entries - before.entries, bytes: taken.bytes - before.bytes },
    left_out: [...walk.skipped].map(([why, files]) => `${plural(files, "file")} of the workspace ${name} ${why}`)
  }
})
