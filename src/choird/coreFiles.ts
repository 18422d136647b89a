/** choird writes no core file, also where its caller allows one: it would hold every secret. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { HOST_PATH } from "#src/choird/runtime/HostProcess.ts"

/** The longest wait for a program that only makes one system call. */
const PRLIMIT_MS_MAX = 5000
const NONE = /^Max core file size +0 +0 /mu

const isNone = (): boolean => {
  try {
    return NONE.test(readFileSync("/proc/self/limits", "utf8"))
  } catch {
    // A host without /proc, which is refused in words of its own.
    return false
  }
}

/** Sets choird's limit on core files to 0; its children inherit it. Node cannot do so by itself, so prlimit(1) does it from outside. */
export const withoutCoreFiles = Effect.suspend(() => {
  if (isNone()) return Effect.void
  const args = ["--pid", String(process.pid), "--core=0:0"]
  const { error, stderr } = spawnSync("prlimit", args, {
    env: { PATH: HOST_PATH },
    encoding: "utf8",
    timeout: PRLIMIT_MS_MAX
  })
  if (isNone()) return Effect.void
  const reason = error?.message ?? stderr.trim()
  return Effect.logWarning(
    `a crash of choird may write a core file, which holds every secret: prlimit cannot set its limit to 0 (${reason}). Install util-linux, or start choird after: ulimit -c 0`
  )
})
