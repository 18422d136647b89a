/** The names of what can be locked (D27): one rule for the agent, which takes the locks, and the build, which checks manifests. */
import { Result, Schema } from "effect"
import { pathInside } from "./workspacePath.ts"

/** A path of the workspace as a tool spells it: the kernel takes one byte less than PATH_MAX (D27). */
export const WORKSPACE_PATH_BYTES_MAX = 4095
/** Locks that one tool call may ask for. */
export const LOCKSET_LOCKS_MAX = 64
/** The part that an error quotes of a resource key that cannot be locked. */
export const INVALID_LOCK_CHARS_MAX = 200

const PROBLEMS = {
  empty_path: "the path is empty; name a file or folder, or . for the whole workspace",
  nul: "the path holds a NUL byte",
  not_text: "the path holds an unpaired surrogate, which is not valid in a file name",
  path_too_long: `the path is longer than ${WORKSPACE_PATH_BYTES_MAX} bytes`,
  outside: "the path leaves the workspace; give one inside it, relative to its root",
  unknown_resource: "no such resource; use workspace, file:<path>, browser_tab, choirtmp or mem:, repo:, net:, ext:",
  too_many: `a tool call may take at most ${LOCKSET_LOCKS_MAX} locks`
} as const
type LockProblem = keyof typeof PROBLEMS

/** A lock that cannot mean anything. The model made up the path, or a manifest the resource. */
export class InvalidLock extends Schema.TaggedError<InvalidLock>()("InvalidLock", {
  resource: Schema.String,
  problem: Schema.Literals(Object.keys(PROBLEMS) as Array<LockProblem>)
}) {
  override get message() {
    return `${JSON.stringify(this.resource)} cannot be locked: ${PROBLEMS[this.problem]}`
  }
}

export const invalidLock = (resource: string, problem: LockProblem) =>
  Result.fail(new InvalidLock({ resource: resource.slice(0, INVALID_LOCK_CHARS_MAX), problem }))

/** The key that covers every file but those of the staging area. */
export const WORKSPACE_KEY = "workspace"
/** The beginning of the key of a single file or folder. */
export const FILE_KEY = "file:"
/** The key of the staging area. */
export const STAGING_KEY = "choirtmp"
const STAGING = ".choirtmp"
const OTHER = /^(browser_tab|choirtmp|(mem|repo|net|ext):[!-~]{1,128})$/u

const malformation = (path: string): LockProblem | undefined => {
  if (path === "") return "empty_path"
  if (path.includes("\0")) return "nul"
  if (!path.isWellFormed()) return "not_text"
  return Buffer.byteLength(path) > WORKSPACE_PATH_BYTES_MAX ? "path_too_long" : undefined
}

/**
 * The one resource key of a file or folder, however it is spelled (D27, R18): `file:<path>` relative to the workspace's
 * root, `workspace` for the root itself, and `choirtmp` for the staging area, which the workspace lock does not cover.
 * An absolute path counts when it starts with `/workspace`. Names are compared byte for byte, as the kernel
 * does.
 *
 * It reads no disk: `..` is taken back by spelling, which is exact because tools follow no symbolic link inside the
 * workspace.
 */
export const fileKey = (path: string): Result.Result<string, InvalidLock> => {
  const problem = malformation(path)
  const inside = problem === undefined ? pathInside(path) : undefined
  if (inside === undefined) {
    return invalidLock(FILE_KEY + path, problem ?? "outside")
  }
  if (inside === "") return Result.succeed(WORKSPACE_KEY)
  return Result.succeed(inside === STAGING || inside.startsWith(`${STAGING}/`) ? STAGING_KEY : FILE_KEY + inside)
}

/** The canonical key of a resource as a manifest spells it. */
export const lockKey = (resource: string): Result.Result<string, InvalidLock> => {
  if (resource.startsWith(FILE_KEY)) return fileKey(resource.slice(FILE_KEY.length))
  return resource === WORKSPACE_KEY || OTHER.test(resource)
    ? Result.succeed(resource)
    : invalidLock(resource, "unknown_resource")
}
