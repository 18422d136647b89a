/** The folders that a command of choir.exec names: where it runs, what it locks, and where alone it can write. */
import { join } from "node:path"
import { Effect, type Scope, Schema } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import { FOLDERS_MAX, isShared } from "#src/agent/process/startCommand.ts"
import { isEdgeScratch } from "#src/agent/workspace/edgeScratch.ts"
import type { PathRefused } from "#src/agent/workspace/PathRefused.ts"
import type { Workspace } from "#src/agent/workspace/Workspace.ts"
import { FILE_KEY, WORKSPACE_KEY } from "#src/shared/image/lockKey.ts"

/** Folders beside the working folder; that one may be a further one. */
const PATHS_MAX = FOLDERS_MAX - 1

export const folderFields = {
  cwd: Schema.optionalKey(
    Schema.NonEmptyString.annotate({
      description: "Runs in this folder and changes nothing outside of it; without it locks the whole workspace"
    })
  ),
  paths: Schema.optionalKey(
    Schema.Array(Schema.NonEmptyString)
      .check(Schema.isMaxLength(PATHS_MAX))
      .annotate({ description: "Further folders that it changes" })
  ),
  reads_only: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Changes nothing in the workspace, and so runs beside others" })
  )
}

/** The folders that a call names, and the worktree of its job, which is all that the job works in. */
interface Named {
  readonly cwd?: string
  readonly paths?: ReadonlyArray<string>
  readonly reads_only?: boolean
  readonly tree: string | undefined
}

export interface ExecFolders {
  readonly locks: ReadonlyArray<LockRequest>
  /** Whether it can change nothing that a job works on, so that edge may run it beside jobs. */
  readonly besideJobs: boolean
  /** Where it can write, in words; absent where that is the whole workspace. */
  readonly words?: string
  /** Opens its folders for the process while the scope lives. */
  readonly open: Effect.Effect<
    { readonly cwd: string; readonly writes?: ReadonlyArray<string> },
    PathRefused,
    Scope.Scope
  >
}

const lock = (folder: string | undefined, mode: "S" | "X") =>
  LockRequest.make({ resource: folder === undefined ? WORKSPACE_KEY : `${FILE_KEY}${folder}`, mode })

/**
 * @param limits whether the kernel can keep a command to its folders. Where it cannot, each locks all that its lane works in: a lock on a part
 *   would say nothing.
 */
export const execFolders = (
  workspace: Workspace["Service"],
  { cwd, paths = [], reads_only = false, tree }: Named,
  limits: boolean
): ExecFolders => {
  const named = [...(cwd === undefined ? [] : [cwd]), ...paths]
  const isLimited = limits && !isShared(workspace.root) && (reads_only || named.length > 0)
  const cwdOf =
    cwd === undefined
      ? Effect.succeed(join(workspace.root, tree ?? ""))
      : Effect.map(workspace.folder(cwd), (folder) => folder.cwd)
  if (!isLimited)
    return { locks: [lock(tree, "X")], besideJobs: false, open: Effect.map(cwdOf, (found) => ({ cwd: found })) }
  const writes = reads_only ? [] : named
  return {
    locks: (named.length === 0 ? [tree] : named).map((folder) => lock(folder, reads_only ? "S" : "X")),
    besideJobs: reads_only || named.every((folder) => isEdgeScratch(`${folder}/file`)),
    words: reads_only
      ? "it can change nothing in the workspace"
      : `it can change nothing outside of ${named.join(", ")}`,
    open: Effect.gen(function* () {
      const folders = yield* Effect.forEach(writes, (folder) => workspace.folder(folder))
      return { cwd: yield* cwdOf, writes: folders.map((folder) => folder.cwd) }
    })
  }
}
