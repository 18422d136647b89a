import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { CgroupName, Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { bootId, conditionOf, parseStat, statOf } from "#src/choird/runtime/ProcessIdentity.ts"
import type { ProcessStat } from "#src/choird/runtime/ProcessIdentity.ts"
import { endTree, treeOf } from "#src/choird/runtime/ProcessTree.ts"
import { LIVE } from "./rig.ts"

describe("ProcessIdentity", () => {
  it("reads the fields behind a name that holds spaces and parentheses", () => {
    const rest = Array.from({ length: 30 }, (_, index) => String(index)).join(" ")
    assert.deepStrictEqual(parseStat(`42 (a) S 1 1 (b) S 7 8 9 ${rest}`), {
      pid: 42,
      state: "S",
      parent: 7,
      group: 8,
      session: 9,
      start: "15"
    })
    assert.isUndefined(parseStat(""))
    assert.isUndefined(parseStat("42 (sh) S 1"))
  })

  it.effect("knows this process from one that had its pid before", () =>
    Effect.gen(function* () {
      const own = yield* statOf(process.pid)
      assert.isDefined(own)
      if (own === undefined) return
      assert.strictEqual(own.parent, process.ppid)
      assert.strictEqual(yield* conditionOf(own), "running")
      assert.strictEqual(yield* conditionOf({ ...own, start: `${own.start}0` }), "gone")
    })
  )
})

describe("treeOf", () => {
  const leader = { pid: 100, start: "5" }
  const at = (pid: number, parent: number, session: number, start = "5"): ProcessStat => ({
    pid,
    parent,
    session,
    start,
    group: session,
    state: "S"
  })
  const pids = (
    processes: ReadonlyArray<ProcessStat>,
    known: ReadonlyArray<number> = [],
    ours: ReadonlyArray<number> = []
  ) => treeOf(processes, leader, new Set(known), (pid) => ours.includes(pid)).map(({ pid }) => pid)

  it("takes descendants, also those in sessions of their own, and the rest of the session", () => {
    const processes = [
      at(1, 0, 1),
      at(50, 1, 50),
      at(100, 50, 100),
      at(101, 100, 100),
      at(102, 101, 102),
      at(103, 1, 100),
      at(104, 102, 104)
    ]
    assert.deepStrictEqual(pids(processes), [100, 101, 102, 103, 104])
  })

  it("after the leader's death takes of its session only what is recognised", () => {
    assert.deepStrictEqual(pids([at(103, 1, 100), at(104, 103, 104), at(105, 1, 100)], [], [103]), [103, 104])
  })

  it("takes nothing of a session whose leader has the pid but not the start time", () => {
    assert.deepStrictEqual(pids([at(100, 1, 100, "9"), at(101, 100, 100, "9")], [], [100, 101]), [])
  })

  it("keeps to what it knew when parents die during the search", () => {
    assert.deepStrictEqual(pids([at(102, 1, 102), at(105, 102, 105)], [102]), [102, 105])
  })
})

describe("endTree", () => {
  it.effect("gives up with the reason when what it waits for does not come, also while a scope closes", () =>
    Effect.gen(function* () {
      const stuck = Cgroups.of({
        enforced: { cpus: true, memory_mb: true, pids: true },
        create: () => Effect.die("not used"),
        members: () => Effect.never,
        remove: () => Effect.void
      })
      const cgroup = CgroupName.make("choir-none-1")
      const id = { type: "sandbox" as const, boot_id: yield* bootId, processes: [], cgroup, workspace: "/none" }
      const ending = yield* Effect.forkChild(
        Effect.uninterruptible(Effect.provideService(Effect.flip(endTree(id)), Cgroups, stuck)),
        {
          startImmediately: true
        }
      )
      yield* TestClock.adjust("11 seconds")
      const error = yield* Fiber.join(ending)
      assert.strictEqual(error.reason, "stuck")
    })
  )
})

describe("a choird that has no descriptor left", () => {
  /** What a process with few descriptors sees of its container once it has none. */
  const seen = (type: "sandbox" | "process") =>
    Effect.promise(async () => {
      const program = join(import.meta.dirname, "withoutDescriptors.ts")
      const words = ["-c", 'ulimit -n 128 && exec "$@"', "sh", process.execPath, program, type]
      const { stdout } = await promisify(execFile)("/bin/sh", words)
      return JSON.parse(stdout) as Readonly<Record<string, unknown>>
    })

  const SEEN = {
    before: "running",
    without: "unknown",
    calledEmpty: false,
    calledGone: false,
    killed: "Success",
    after: "gone"
  }

  it.live(
    "stops a container that it cannot see, does not call it gone, and ends it once it can (R8)",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* seen("process"), { ...SEEN, state: "T" })
      }),
    LIVE
  )

  it.live(
    "kills a sandbox that it cannot see, and calls it gone only once it has looked (R8)",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* seen("sandbox"), { ...SEEN, state: "Z" })
      }),
    LIVE
  )
})
