/**
 * Memory, process and processor limits by control groups, version 1 and 2 (cgroups(7)), where choird may write them. Where it
 * may not, nothing fails: `enforced` is false, and `status` reports it.
 */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Clock, Context, Effect, Layer, Option, Schedule, Schema } from "effect"
import type { Scope } from "effect"
import { restarted } from "#src/shared/background.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { groupParents, joinFile, limitFiles, oomKillsIn, shareFile, usageFile, usedIn } from "./cgroupFiles.ts"
import { type CpuUse, steppingBack, useAfter } from "./cpuPrecedence.ts"
import type { ContainerLimits, Controller, GroupParent } from "./cgroupFiles.ts"

/** Time from the kill of a container until each of its processes is gone; exceeding it leaves the agent stopped and is reported (R8). */
export const CONTAINER_GONE_MS_MAX = 10_000
/** Pause between two checks whether a killed process is gone. */
export const CONTAINER_GONE_POLL_MS = 5

/** Between two looks at which groups use the most. */
const SHARE_OUT_MS = 500

/** One container's group: `choir-<session and home>-<epoch>`. The only names that this service makes or removes. */
export const CgroupName = Schema.String.check(Schema.isPattern(/^choir-[0-9a-z]{1,32}-[0-9]{1,10}$/u)).pipe(
  Schema.brand("CgroupName")
)
export type CgroupName = typeof CgroupName.Type

/** A group that could not be created, limited or read. */
export class CgroupError extends Schema.TaggedError<CgroupError>()("CgroupError", {
  file: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    return `the control group file ${this.file} cannot be used: ${String(this.cause)}`
  }
}

export interface Cgroup {
  /** A process that writes `0` into each of these belongs to the group, and so do its children. */
  readonly joins: ReadonlyArray<string>
  /** The number of its processes that the kernel has killed for lack of memory. */
  readonly oomKills: Effect.Effect<number>
}

export class Cgroups extends Context.Service<
  Cgroups,
  {
    readonly enforced: { readonly cpus: boolean; readonly memory_mb: boolean; readonly pids: boolean }
    /** Makes a group with these limits; the scope removes it, after its processes are gone. */
    create(name: CgroupName, limits: ContainerLimits): Effect.Effect<Cgroup, CgroupError, Scope.Scope>
    /** The pids in a group, also of an earlier choird; empty when the group does not exist. */
    members(name: CgroupName): Effect.Effect<ReadonlyArray<number>, CgroupError>
    /** Removes a group whose processes are gone, if it exists. */
    remove(name: CgroupName): Effect.Effect<void>
  }
>()("choir/choird/Cgroups") {
  static readonly layer = Layer.effect(
    Cgroups,
    Effect.gen(function* () {
      const mounts = yield* readText("/proc/self/mountinfo")
      const own = yield* readText("/proc/self/cgroup")
      const parents: Array<GroupParent> = []
      for (const found of groupParents(mounts, own)) {
        const usable = yield* usableParent(found)
        if (usable !== undefined) parents.push(usable)
      }
      const groups = new Map<CgroupName, Shared>()
      const left = new Set<string>()
      yield* Effect.repeat(Effect.andThen(shareOut(parents, groups), sweep(left)), Schedule.spaced(SHARE_OUT_MS)).pipe(
        restarted("the sharing of the host's limits"),
        Effect.forkScoped
      )
      return make(parents, groups, left)
    })
  )
}

const quietly = <A>(act: () => A): Effect.Effect<Option.Option<A>> =>
  Effect.option(Effect.try({ try: act, catch: () => undefined }))

const readText = (path: string) =>
  Effect.map(
    quietly(() => readFileSync(path, "utf8")),
    Option.getOrElse(() => "")
  )

/** The kernel answers ENODEV for a group that is removed while its file is open. */
const NO_GROUP = new Set(["ENOENT", "ENODEV"])

/** The text of a `cgroup.procs`, empty when the group does not exist. A group that cannot be read is not an empty one. */
const readProcs = (file: string) =>
  Effect.try({ try: () => readFileSync(file, "utf8"), catch: (cause) => new CgroupError({ file, cause }) }).pipe(
    Effect.catchIf(
      ({ cause }) => NO_GROUP.has(codeOf(cause) ?? ""),
      () => Effect.succeed("")
    )
  )

const canWrite = (path: string) =>
  Effect.map(
    quietly(() => accessSync(path, constants.W_OK)),
    Option.isSome
  )

/**
 * Version 1: a child of choird's own group. Version 2 gives limits only below a group that has no processes of its own, so there
 * it is the nearest such ancestor that delegates controllers; and a process may only move within what its mover may write.
 */
const usableParent = Effect.fnUntraced(function* (found: GroupParent): Effect.fn.Return<GroupParent | undefined> {
  for (const folder of found.folders) {
    if (!existsSync(folder)) continue
    const delegated = (yield* readText(join(folder, "cgroup.subtree_control"))).split(/\s+/u)
    const controllers =
      found.version === 1 ? found.controllers : found.controllers.filter((name) => delegated.includes(name))
    if (controllers.length === 0) continue
    if ((yield* canWrite(folder)) && (yield* canWrite(join(folder, "cgroup.procs")))) {
      return { ...found, controllers, folders: [folder] }
    }
  }
  return undefined
})

/** A group that competes with others for processors. */
interface Shared {
  use: CpuUse | undefined
  isBack: boolean
}

const folderOf = (parent: GroupParent, name: CgroupName) => join(parent.folders[0] ?? "", name)

/** Reads what each group has used, and lets those that use the most step back. */
const shareOut = (parents: ReadonlyArray<GroupParent>, groups: ReadonlyMap<CgroupName, Shared>) => {
  let looked_ns: bigint | undefined
  return Effect.gen(function* () {
    const now_ns = yield* Clock.monotonicTimeNanos
    const elapsed_ms = looked_ns === undefined ? 0 : Number(now_ns - looked_ns) / 1_000_000
    looked_ns = now_ns
    const counted = parents.find((parent) => usageFile(parent) !== undefined)
    if (counted === undefined) return
    const uses = new Map<CgroupName, CpuUse>()
    for (const [name, group] of groups) {
      const used_us = usedIn(counted.version, yield* readText(join(folderOf(counted, name), usageFile(counted) ?? "")))
      if (used_us === undefined) continue
      group.use = useAfter(group.use, used_us, elapsed_ms)
      uses.set(name, group.use)
    }
    const back = steppingBack(uses)
    for (const [name, group] of groups) {
      if (group.isBack === back.has(name)) continue
      group.isBack = back.has(name)
      for (const parent of parents) {
        const share = shareFile(parent, group.isBack)
        const path = join(folderOf(parent, name), share?.file ?? "")
        // A group may end, and a kernel may lack the file.
        if (share !== undefined && existsSync(path)) yield* quietly(() => writeFileSync(path, share.text))
      }
    }
  })
}

/** Removes the groups that were left behind once their last processes are gone, which a busy host may take minutes for. */
const sweep = (left: Set<string>): Effect.Effect<void> =>
  Effect.forEach(
    [...left],
    (folder) =>
      Effect.map(
        quietly(() => rmdirSync(folder)),
        (removed) => {
          if (Option.isSome(removed) || !existsSync(folder)) left.delete(folder)
        }
      ),
    { discard: true }
  )

/** Removes a group; one that cannot be removed in time joins those that were left behind. */
const removeFolder = (folder: string, left: Set<string>) =>
  Effect.sync(() => existsSync(folder)).pipe(
    Effect.andThen((there) =>
      there
        ? Effect.try({ try: () => rmdirSync(folder), catch: (cause) => new CgroupError({ file: folder, cause }) })
        : Effect.void
    ),
    // The kernel empties a group a moment after its last process is gone.
    Effect.retry({ schedule: Schedule.spaced(CONTAINER_GONE_POLL_MS) }),
    Effect.interruptible,
    Effect.timeout(CONTAINER_GONE_MS_MAX),
    Effect.catch(() => {
      left.add(folder)
      return Effect.logWarning(`the control group ${folder} is still in use and stays until its processes are gone`)
    })
  )

const write = (file: string, text: string) =>
  Effect.try({ try: () => writeFileSync(file, text), catch: (cause) => new CgroupError({ file, cause }) })

/** @param left the folders of groups that could not be removed in time. */
const make = (
  parents: ReadonlyArray<GroupParent>,
  groups: Map<CgroupName, Shared>,
  left: Set<string>
): Cgroups["Service"] => {
  const has = (controller: Controller) => parents.some(({ controllers }) => controllers.includes(controller))
  const folders = (name: CgroupName) => [...new Set(parents.map((parent) => folderOf(parent, name)))]

  const members = Effect.fnUntraced(function* (name: CgroupName) {
    const pids = new Set<number>()
    for (const folder of folders(name)) {
      const text = yield* readProcs(join(folder, "cgroup.procs"))
      for (const line of text.split("\n")) if (line !== "") pids.add(Number(line))
    }
    return [...pids]
  })

  const remove = (name: CgroupName) =>
    Effect.forEach(folders(name), (folder) => removeFolder(folder, left), { discard: true })

  const create = Effect.fn("Cgroups.create")(function* (name: CgroupName, limits: ContainerLimits) {
    yield* Effect.addFinalizer(() =>
      Effect.andThen(
        Effect.sync(() => groups.delete(name)),
        remove(name)
      )
    )
    for (const parent of parents) {
      const folder = folderOf(parent, name)
      // A group of this name that was left behind is wanted again.
      left.delete(folder)
      yield* Effect.try({
        try: () => mkdirSync(folder, { recursive: true }),
        catch: (cause) => new CgroupError({ file: folder, cause })
      })
      for (const { file, text, optional } of limitFiles(parent, limits)) {
        const path = join(folder, file)
        if (optional && !existsSync(path)) continue
        yield* write(path, text)
      }
    }
    groups.set(name, { use: undefined, isBack: false })
    const oomKills = Effect.gen(function* () {
      let kills = 0
      for (const folder of folders(name)) {
        kills += oomKillsIn(yield* readText(join(folder, "memory.events")))
        kills += oomKillsIn(yield* readText(join(folder, "memory.oom_control")))
      }
      return kills
    })
    return { joins: folders(name).map(joinFile), oomKills }
  })

  return Cgroups.of({
    enforced: { cpus: has("cpu"), memory_mb: has("memory"), pids: has("pids") },
    create,
    members,
    remove
  })
}
