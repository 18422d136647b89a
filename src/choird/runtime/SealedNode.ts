/**
 * A copy of Node that may be run but not read. The kernel then lets no process of the same user look into the memory, the
 * environment or the descriptors of one that runs it (would_dump in fs/exec.c, PTRACE_MODE_READ in ptrace(2)), which is how
 * the tools of a sandbox are kept from the agent's secrets (D13).
 */
import { createHash } from "node:crypto"
import { chmodSync, constants, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs"
import { copyFile, rename } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { ContainerError } from "./ContainerRuntime.ts"

const MODE = 0o111

const failed = (cause: unknown) =>
  new ContainerError({
    reason: "failed",
    problem: `Node cannot be copied for sandboxes: ${String(cause)}`,
    fix: "Make room on the disk of choird's home"
  })

const isSealed = (path: string, size: number) => {
  if (!existsSync(path)) return false
  const stat = statSync(path)
  return stat.size === size && (stat.mode & 0o7777) === MODE && stat.uid === process.getuid?.()
}

/** The sealed copy of `node` in `folder`, made at first use and when Node itself changed; copies of other versions go. */
export const sealNode = Effect.fn("SealedNode.seal")(function* (node: string, folder: string) {
  const { source, name, size } = yield* Effect.try({
    try: () => {
      const source = realpathSync(node)
      const { size, mtimeMs } = statSync(source)
      const key = createHash("sha256").update(`${source}\n${size}\n${mtimeMs}`).digest("hex").slice(0, 16)
      return { source, size, name: `node-${key}` }
    },
    catch: failed
  })
  const path = join(folder, name)
  if (yield* Effect.try({ try: () => isSealed(path, size), catch: failed })) return path
  yield* Effect.tryPromise({
    try: async () => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      for (const old of readdirSync(folder)) if (old.startsWith("node-")) rmSync(join(folder, old))
      await copyFile(source, `${path}.tmp`, constants.COPYFILE_FICLONE)
      chmodSync(`${path}.tmp`, MODE)
      await rename(`${path}.tmp`, path)
    },
    catch: failed
  })
  return path
})
