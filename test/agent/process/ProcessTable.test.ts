import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  CALL_MARKER,
  type KnownProcesses,
  type ProcessEntry,
  processesOf,
  readMarker
} from "#src/agent/process/ProcessTable.ts"

const AGENT = 7

const entry = (pid: number, parent: number, session = pid, group = session): ProcessEntry => ({
  pid,
  parent,
  session,
  group,
  start: pid
})

const remains = (
  table: ReadonlyArray<ProcessEntry>,
  known: Partial<KnownProcesses> = {},
  markers: Readonly<Record<number, string>> = {}
) =>
  processesOf(
    "a",
    { entries: [entry(1, 0), entry(AGENT, 1), ...table], complete: true },
    {
      agent: AGENT,
      leaders: new Map([
        [10, "a"],
        [20, "b"]
      ]),
      markers: new Map([
        ["mark of a", "a"],
        ["mark of b", "b"]
      ]),
      exempt: new Set(),
      ownsPidNamespace: false,
      ...known
    },
    (pid) => markers[pid]
  )

const left = (...asked: Parameters<typeof remains>) => remains(...asked).processes.map(({ pid }) => pid)

describe("processesOf", () => {
  it("finds the direct child, its descendants, its session and its group", () => {
    const table = [entry(10, AGENT), entry(11, 10), entry(12, 11), entry(13, 1, 10), entry(14, 1, 99, 10)]
    assert.deepStrictEqual(left(table), [10, 11, 12, 13, 14])
  })

  it("finds what left its session and its parents by the marker in its environment, and its children", () => {
    assert.deepStrictEqual(left([entry(30, 1), entry(31, 30)], {}, { 30: "mark of a" }), [30, 31])
  })

  it("leaves other calls' processes alone, even when they forge the marker", () => {
    assert.deepStrictEqual(
      left([entry(20, AGENT), entry(21, 20), entry(22, 1)], {}, { 21: "mark of a", 22: "mark of b" }),
      []
    )
  })

  it("keeps a descendant that forges another call's marker", () => {
    assert.deepStrictEqual(left([entry(10, AGENT), entry(11, 10)], {}, { 11: "mark of b" }), [10, 11])
  })

  it("takes an orphan without any trace only in a pid namespace of the agent's own", () => {
    const table = [entry(40, 1), entry(41, 40), entry(42, AGENT)]
    assert.deepStrictEqual(left(table), [])
    assert.deepStrictEqual(left(table, { ownsPidNamespace: true }), [40, 41, 42])
  })

  it("takes an orphan that names a running call by its id, which others may know", () => {
    assert.deepStrictEqual(left([entry(40, 1)], { ownsPidNamespace: true }, { 40: "b" }), [40])
    assert.deepStrictEqual(left([entry(40, 1)], { ownsPidNamespace: true }, { 40: "mark of b" }), [])
  })

  it("takes an orphan that carries the marker of a call that is over", () => {
    assert.deepStrictEqual(left([entry(40, 1)], { ownsPidNamespace: true }, { 40: "z" }), [40])
  })

  it("doubts its look while an orphan has no environment: it may be about to begin a program", () => {
    const orphan = [entry(30, 1)]
    assert.deepStrictEqual(remains(orphan, {}, { 30: "" }), { processes: [], complete: false })
    assert.isTrue(remains(orphan, {}, { 30: "z" }).complete)
    assert.isTrue(remains([entry(10, AGENT), entry(30, 10)], {}, { 30: "" }).complete, "a descendant is known anyway")
    assert.isTrue(remains([entry(30, 2, 0)], {}, { 30: "" }).complete, "a thread of the kernel never has one")
    assert.isTrue(remains(orphan, { exempt: new Set(["30:30"]) }, { 30: "" }).complete, "it ran before the agent")
    assert.deepStrictEqual(remains(orphan, { ownsPidNamespace: true }, { 30: "" }), {
      processes: orphan,
      complete: true
    })
  })

  it("never takes the agent, init, what another namespace brought in, or what ran before the agent", () => {
    const table = [entry(50, 1), entry(60, 0), entry(61, 60)]
    const known = { ownsPidNamespace: true, exempt: new Set(["50:50"]) }
    assert.deepStrictEqual(left(table, known, { [AGENT]: "mark of a", 1: "mark of a", 50: "mark of a" }), [])
  })

  it("ends on a table that runs in circles", () => {
    assert.deepStrictEqual(left([entry(70, 71), entry(71, 70)]), [])
  })
})

describe("readMarker", () => {
  const markerIn = (env: NodeJS.ProcessEnv) =>
    Effect.gen(function* () {
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn("/bin/cat", { env, stdio: ["pipe", "pipe", "ignore"] })),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      child.stdin.write("it runs")
      yield* Effect.promise(() => once(child.stdout, "data"))
      return readMarker(child.pid ?? 0)
    })

  it.effect("reads the call from a process's environment, and nothing where there is none", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* markerIn({ [CALL_MARKER]: "c-1", LANG: "C" }), "c-1")
      assert.isUndefined(yield* markerIn({ LANG: "C" }))
      assert.strictEqual(yield* markerIn({}), "")
    }).pipe(Effect.scoped)
  )
})
