import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { type Cgroup, CgroupName, Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { leaveOut } from "../../support/packages.ts"

const PROCESSORS = availableParallelism()
const LIMITS = { cpus: PROCESSORS, memory_mb: 256, pids: 32 + 2 * PROCESSORS }

const suite = "groups that step back"
const { cpus } = await Effect.runPromise(
  Effect.scoped(
    Effect.provide(
      Effect.map(Cgroups, ({ enforced }) => enforced),
      Cgroups.layer
    )
  )
)
const reason = cpus ? undefined : leaveOut(suite, "choird may not write control groups here")

/** A number of the first of these files that a group has. */
const numberIn = ({ joins }: Cgroup, files: Readonly<Record<string, RegExp>>): number => {
  for (const folder of joins.map(dirname))
    for (const [file, pattern] of Object.entries(files)) {
      const path = join(folder, file)
      const found = existsSync(path) ? pattern.exec(readFileSync(path, "utf8"))?.[1] : undefined
      if (found !== undefined) return Number(found)
    }
  throw new Error(`no group has one of ${Object.keys(files).join(", ")}`)
}
const shareOf = (group: Cgroup) => numberIn(group, { "cpu.shares": /(\d+)/u, "cpu.weight": /(\d+)/u })

/** A program in a group, which ends with the scope. */
const runIn = ({ joins }: Cgroup, script: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const joined = joins.map((file) => `echo 0 > '${file}'`).join(" && ")
      return spawn("sh", ["-c", `${joined} && exec ${script}`], { stdio: "ignore", detached: true })
    }),
    ({ pid }) => Effect.sync(() => void (pid !== undefined && process.kill(-pid, "SIGKILL")))
  )

const becomes = (condition: () => boolean) =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.fail("not yet"))).pipe(
    Effect.retry(Schedule.spaced("20 millis"))
  )

describe.skipIf(reason !== undefined)(suite, () => {
  it.live(
    "gives a group that takes all it may a tenth while another does a little, and all again after that one's end",
    () =>
      Effect.gen(function* () {
        const cgroups = yield* Cgroups
        const made = (nth: number) => cgroups.create(CgroupName.make(`choir-back${process.pid}-${nth}`), LIMITS)
        const works = yield* made(1)
        const full = shareOf(works)
        yield* runIn(works, `sh -c '${"while :; do :; done & ".repeat(PROCESSORS)} wait'`)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const talks = yield* made(2)
            yield* runIn(talks, "sh -c 'while sleep 0.1; do :; done'")
            yield* becomes(() => shareOf(works) === Math.floor(full / 10))
            assert.strictEqual(shareOf(talks), full)
          })
        )
        yield* becomes(() => shareOf(works) === full)
      }).pipe(Effect.provide(Cgroups.layer))
  )
})
