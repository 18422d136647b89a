/**
 * Copies of programs that may be run but not read. The kernel then lets no process of the same user look into the memory, the
 * environment or the descriptors of one that runs them (would_dump in fs/exec.c, PTRACE_MODE_READ in ptrace(2)). The tools of a
 * sandbox are so kept from the agent's secrets, and from its first process, which could fork for them behind every call (D13).
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
    problem: `a program cannot be copied for sandboxes: ${String(cause)}`,
    fix: "Make room on the disk of choird's home"
  })

const isSealed = (path: string, size: number) => {
  if (!existsSync(path)) return false
  const stat = statSync(path)
  return stat.size === size && (stat.mode & 0o7777) === MODE && stat.uid === process.getuid?.()
}

/**
 * The sealed copy of a program, as `<name>-<key>` in `folder`. It is made at first use and when the program itself changed; copies of
 * its other versions are deleted.
 */
export const sealProgram = Effect.fn("SealedProgram.seal")(function* (name: string, program: string, folder: string) {
  const { source, file, size } = yield* Effect.try({
    try: () => {
      const source = realpathSync(program)
      const { size, mtimeMs } = statSync(source)
      const key = createHash("sha256").update(`${source}\n${size}\n${mtimeMs}`).digest("hex").slice(0, 16)
      return { source, size, file: `${name}-${key}` }
    },
    catch: failed
  })
  const path = join(folder, file)
  if (yield* Effect.try({ try: () => isSealed(path, size), catch: failed })) return path
  yield* Effect.tryPromise({
    try: async () => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      for (const old of readdirSync(folder)) if (old.startsWith(`${name}-`)) rmSync(join(folder, old))
      await copyFile(source, `${path}.tmp`, constants.COPYFILE_FICLONE)
      chmodSync(`${path}.tmp`, MODE)
      await rename(`${path}.tmp`, path)
    },
    catch: failed
  })
  return path
})
