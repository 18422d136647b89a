/**
 * The emptying of a workspace, whose folder stays (R41). Its contents are hostile: no shell reads a name, links are removed and not
 * followed, other file systems are not entered, and a workspace with a mount in it is refused.
 */
import { chmodSync, readdirSync, readFileSync, statSync } from "node:fs"
import { Effect } from "effect"
import { ContainerError } from "./ContainerRuntime.ts"
import { HOST_PATH, run } from "./HostProcess.ts"
import { isInside, realPath, workspaceProblem } from "./Ownership.ts"

/** How long emptying a workspace may take, in a container or without one. */
export const WORKSPACE_RESET_MS_MAX = 600_000
/** Passes that empty both sides of a workspace in turn: the depth of foreign folders within foreign folders. */
const RESET_PASSES_MAX = 4
/** Names of undeletable files that are shown. */
const RESET_LEFT_SHOWN_MAX = 5

const refused = (problem: string, fix: string) => new ContainerError({ reason: "refused", problem, fix })
const failed = (problem: string, fix: string) => new ContainerError({ reason: "failed", problem, fix })

/** The text of a field, in which proc(5) escapes characters that would end it. */
const unescaped = (field: string) =>
  field.replaceAll(/\\([0-7]{3})/gu, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** The first mount point below a folder in a /proc/self/mountinfo; a bind mount of the same file system is one, too. */
export const mountedBelow = (mountinfo: string, folder: string): string | undefined =>
  mountinfo
    .split("\n")
    .map((line) => unescaped(line.split(" ")[4] ?? ""))
    .find((point) => point !== folder && isInside(folder, point))

/** The real path of a folder that may be emptied. */
const emptyable = Effect.fnUntraced(function* (path: string, kept: ReadonlyArray<string>) {
  const folder = yield* realPath(path)
  const problem = workspaceProblem(folder, kept)
  if (problem !== undefined)
    return yield* refused(`the workspace ${folder} ${problem}`, "Give the agent its own folder in config.json")
  const mounted = mountedBelow(readFileSync("/proc/self/mountinfo", "utf8"), folder)
  if (mounted !== undefined)
    return yield* refused(`${JSON.stringify(mounted)} is mounted in the workspace`, `Unmount it: umount ${mounted}`)
  return folder
})

/** The names that are left, safe to print. */
const namesLeft = (folder: string) =>
  Effect.try({
    try: () => readdirSync(folder).map((name) => JSON.stringify(name)),
    catch: (cause) => failed(`${folder} cannot be read: ${String(cause)}`, "Check its owner and its mode")
  })

/** Gives the owner access to its own folder; a folder of another user is not choird's to change. */
const openFolder = (folder: string) =>
  Effect.ignore(Effect.try(() => chmodSync(folder, (statSync(folder).mode & 0o7777) | 0o700)))

const find = Effect.fnUntraced(function* (folder: string, words: ReadonlyArray<string>) {
  // find(1) walks by descriptors, so that no depth is too deep for it, and -P with -delete never follows a link.
  yield* run({
    program: "find",
    args: ["-P", folder, "-xdev", "-mindepth", "1", ...words],
    cwd: "/",
    env: { PATH: HOST_PATH }
  })
})

/** Deletes the files that choird's own user may delete. */
const deleteInside = Effect.fnUntraced(function* (folder: string) {
  yield* openFolder(folder)
  // A folder may keep its own owner out; root is kept out of none.
  if (process.getuid?.() !== 0)
    yield* find(folder, ["-type", "d", "!", "-perm", "-0700", "-execdir", "chmod", "u+rwx", "{}", ";"])
  yield* find(folder, ["-delete"])
})

/**
 * @param kept real paths that must not be in it: choird's home, and the other workspaces.
 * @param mapped deletes what belongs to uids that are not choird's to act as, where there are such (D43).
 */
export const emptyWorkspace = Effect.fn("emptyWorkspace")(
  function* (
    path: string,
    kept: ReadonlyArray<string>,
    mapped?: (folder: string) => Effect.Effect<void, ContainerError>
  ) {
    const folder = yield* emptyable(path, kept)
    let left: ReadonlyArray<string> = []
    // Folders of either side may be in folders of the other: each pass takes off one layer of them.
    for (let pass = 0; pass < RESET_PASSES_MAX; pass++) {
      if (mapped !== undefined) yield* mapped(folder)
      yield* deleteInside(folder)
      left = yield* namesLeft(folder)
      if (left.length === 0) return
    }
    const more = left.length > RESET_LEFT_SHOWN_MAX ? ` and ${left.length - RESET_LEFT_SHOWN_MAX} more` : ""
    return yield* failed(
      `${left.slice(0, RESET_LEFT_SHOWN_MAX).join(", ")}${more} could not be deleted from ${folder}`,
      `Check their owners, and delete them as root: find ${folder} -xdev -mindepth 1 -delete`
    )
  },
  Effect.timeoutOrElse({
    duration: WORKSPACE_RESET_MS_MAX,
    orElse: () =>
      Effect.fail(
        failed(
          `emptying the workspace took longer than ${WORKSPACE_RESET_MS_MAX / 60_000} minutes`,
          "Run it again: it continues with the rest"
        )
      )
  })
)
