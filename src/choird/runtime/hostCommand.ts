/** Commands that a program of the host is started by: in its control groups, and never without choird. */

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

/** Joins control groups, then becomes the rest. The files come first, after their count. */
const JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'

/** Ends if choird died before the kernel was told to kill this process with it. */
const GUARD = '[ "$PPID" = "$1" ] || exit 125; shift; exec "$@"'

/** A program that joins `joins` first. */
export const joining = (joins: ReadonlyArray<string>, command: ReadonlyArray<string>): ReadonlyArray<string> =>
  joins.length === 0 ? command : ["sh", "-c", JOIN, "sh", String(joins.length), ...joins, ...command]

/** A program that the kernel kills when `parent`, which must be the one that starts it, dies. */
export const dyingWith = (
  parent: number,
  command: ReadonlyArray<string>,
  privileges: ReadonlyArray<string> = []
): ReadonlyArray<string> => [
  "setpriv",
  ...privileges,
  "--pdeathsig=KILL",
  "--",
  "sh",
  "-c",
  GUARD,
  "sh",
  String(parent),
  ...command
]
