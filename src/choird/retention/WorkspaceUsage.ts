/**
 * The size of the workspaces, against a soft quota that is reported and never enforced. A count reads a few entries at a time, in other
 * threads than choird's one, and takes as long as it needs.
 */
import { constants, type Dirent } from "node:fs"
import { lstat, open, opendir, readlink, realpath } from "node:fs/promises"
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { restarted } from "#src/shared/background.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { descriptorPath } from "#src/shared/files/nofollow.ts"
import { bytesText, MIB } from "#src/shared/text/bytesText.ts"

/** The time between two counts of the workspaces. */
const WORKSPACE_LOOK_MS = 600_000
/** The entries of one step of a count, and the pause after each. */
const WORKSPACE_STEP_ENTRIES = 256
const WORKSPACE_STEP_MS = 20
/** Entries after which a count ends; its result is then a lower bound. */
const WORKSPACE_ENTRIES_MAX = 2_000_000
/** Folders of one workspace that wait to be looked into. */
const WORKSPACE_FOLDERS_MAX = 200_000

/** Entries of a workspace that is counted again while somebody waits for its size. */
const WORKSPACE_SOON_ENTRIES_MAX = 5000

/** The size of a workspace at the newest count. */
export interface Usage {
  readonly bytes: number
  readonly entries: number
  /** Whether something was not counted, so that there is more: the count ended before, or could not read it. */
  readonly partial: boolean
  /** Whether it is above `retention.workspace_mb`, or may be, since it was not counted whole. */
  readonly over: boolean
}

interface Limits {
  readonly entries_max: number
  readonly folders_max: number
}

const LIMITS: Limits = { entries_max: WORKSPACE_ENTRIES_MAX, folders_max: WORKSPACE_FOLDERS_MAX }
const BLOCK_BYTES = 512
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** A path as the bytes that the kernel has, of which no name needs to be text. */
type Path = Buffer

/** The entries of a folder, with their names as bytes, which Node gives but its types lack. */
const entriesOf = (folder: Path) =>
  opendir(folder, { bufferSize: WORKSPACE_STEP_ENTRIES, encoding: "buffer" as "utf8" }) as Promise<
    AsyncIterable<unknown>
  > as Promise<AsyncIterable<Dirent<Buffer>>>

const below = (folder: Path, name: Path): Path => Buffer.concat([folder, Buffer.from("/"), name])

interface Walk {
  /** By their real paths. */
  readonly folders: Array<Path>
  bytes: number
  entries: number
  partial: boolean
}

/** Errors of what went since its folder was read, or gave its place to a link. */
const GONE: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "ELOOP"])

/** Nothing, in place of what cannot be read. What is still there, such as a folder beyond the longest path, makes the count a part. */
const unread = (walk: Walk) => (error: unknown) => {
  if (!(error instanceof Error && "code" in error && GONE.has(error.code))) walk.partial = true
  return undefined
}

/** Opens a folder for `use`, if it is still where it was found: its agent may have replaced any folder above it with a link. */
const within = async (walk: Walk, path: Path, use: (opened: Path) => Promise<void>) => {
  const folder = await open(path, FOLDER).catch(unread(walk))
  if (folder === undefined) return
  try {
    const opened = Buffer.from(descriptorPath(folder.fd))
    if ((await readlink(opened, "buffer")).equals(path)) await use(opened)
  } finally {
    await folder.close()
  }
}

/** Counts entries of the folders that wait, up to a step's worth or to the end of a folder. */
const countStep = async (walk: Walk, { folders_max }: Limits) => {
  const from = walk.entries
  while (walk.entries - from < WORKSPACE_STEP_ENTRIES) {
    const path = walk.folders.pop()
    if (path === undefined) return
    await within(walk, path, async (opened) => {
      for await (const { name } of await entriesOf(opened)) {
        const stat = await lstat(below(opened, name)).catch(unread(walk))
        walk.entries += 1
        walk.bytes += (stat?.blocks ?? 0) * BLOCK_BYTES
        // A link is counted and never followed.
        if (stat?.isDirectory() !== true) continue
        if (walk.folders.length < folders_max) walk.folders.push(below(path, name))
        else walk.partial = true
      }
    }).catch(unread(walk))
  }
}

/** The room that everything below a folder takes on the disk. Each step is bounded but for the entries of one folder. */
export const countFolder = Effect.fnUntraced(function* (
  path: string,
  limits: Limits = LIMITS,
  pause: Effect.Effect<void> = Effect.sleep(WORKSPACE_STEP_MS)
) {
  const root = yield* Effect.promise(() => realpath(path, "buffer").catch(() => Buffer.from(path)))
  const walk: Walk = { folders: [root], bytes: 0, entries: 0, partial: false }
  while (walk.folders.length > 0) {
    if (walk.entries >= limits.entries_max) return { bytes: walk.bytes, entries: walk.entries, partial: true }
    yield* Effect.promise(() => countStep(walk, limits))
    yield* pause
  }
  return { bytes: walk.bytes, entries: walk.entries, partial: walk.partial }
})

export class WorkspaceUsage extends Context.Service<
  WorkspaceUsage,
  {
    /** The newest counts, by workspace. One that was never counted is not in it. */
    readonly all: Effect.Effect<ReadonlyMap<ResourceName, Usage>>
    /** The same, with those of few files as they are now. */
    readonly now: Effect.Effect<ReadonlyMap<ResourceName, Usage>>
    /** Counts all workspaces and tells the people whose agents are above the quota. */
    readonly look: Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/WorkspaceUsage") {
  /** Counts every WORKSPACE_LOOK_MS until the scope closes. */
  static readonly layer = Layer.effect(
    WorkspaceUsage,
    Effect.suspend(() => make)
  )
}

const DAY_CHARS = "2026-01-01".length

export const overQuotaText = (name: string, bytes: number, workspace_mb: number) => {
  const quota = `its limit of ${bytesText(workspace_mb * MIB)} (retention.workspace_mb)`
  return bytes > workspace_mb * MIB
    ? `the workspace ${name} holds ${bytesText(bytes)}, more than ${quota}`
    : `the workspace ${name} holds at least ${bytesText(bytes)} and cannot be measured completely, so it is treated as over ${quota}: it has too many files, or folders that are nested too deeply or cannot be read`
}

/** A workspace that was not counted whole may hold anything. */
const isOver = ({ bytes, partial }: Pick<Usage, "bytes" | "partial">, workspace_mb: number | null): boolean =>
  workspace_mb !== null && (partial || bytes > workspace_mb * MIB)

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const outbox = yield* Outbox
  const counted = new Map<ResourceName, Usage>()

  /** Once a day, to the person of the agent that works there. */
  const tell = Effect.fnUntraced(function* (name: ResourceName, text: string) {
    const day = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, DAY_CHARS)
    for (const { agent_id, bindings } of yield* lifecycle.list) {
      if (bindings?.workspace !== name) continue
      const source_id = `quota:${name}:${agent_id}:${day}`
      const asking = `${text}. Ask me to clean up what is not needed.`
      yield* outbox.notify({ agent_id, dms: boundDms(bindings), source_id, text: asking })
    }
  })

  const look = Effect.gen(function* () {
    const { config: before } = yield* config.current
    const names = Object.keys(before.workspaces)
    for (const name of counted.keys()) if (!names.includes(name)) counted.delete(name)
    for (const [key, { path }] of Object.entries(before.workspaces)) {
      const found = yield* countFolder(path)
      const { workspace_mb } = (yield* config.current).config.retention
      const over = isOver(found, workspace_mb)
      counted.set(ResourceName.make(key), { ...found, over })
      if (workspace_mb !== null && over)
        yield* tell(ResourceName.make(key), overQuotaText(key, found.bytes, workspace_mb))
    }
  })

  yield* look.pipe(
    Effect.catchCause((cause) => Effect.logWarning("measuring the workspaces failed", cause)),
    Effect.repeat(Schedule.spaced(WORKSPACE_LOOK_MS)),
    restarted("the measuring of workspaces"),
    Effect.forkScoped
  )

  const all = Effect.sync(() => new Map(counted))
  const soon = { ...LIMITS, entries_max: WORKSPACE_SOON_ENTRIES_MAX }
  const now = Effect.gen(function* () {
    const { config: running } = yield* config.current
    const { workspace_mb } = running.retention
    for (const [key, { path }] of Object.entries(running.workspaces)) {
      const name = ResourceName.make(key)
      if ((counted.get(name)?.entries ?? 0) >= WORKSPACE_SOON_ENTRIES_MAX) continue
      const found = yield* countFolder(path, soon, Effect.yieldNow)
      if (!found.partial) counted.set(name, { ...found, over: isOver(found, workspace_mb) })
    }
    return yield* all
  })
  return WorkspaceUsage.of({ all, look, now })
})
