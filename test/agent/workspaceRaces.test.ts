import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Workspace } from "#src/agent/Workspace.ts"
import { OUTSIDE_TEXT, temporaryWorkspace } from "../support/workspace.ts"

const SWAPS = 12_000

/** Swaps the folder `send` and the file in it for links to the outside and back, until it is ended. */
const SWAPPER = `
  const { renameSync, symlinkSync, unlinkSync, workerData } = { ...require("node:fs"), ...require("node:worker_threads") }
  const { root, outside, swaps } = workerData
  const count = new Int32Array(swaps)
  const swap = (path, target) => {
    renameSync(path, path + "-kept")
    symlinkSync(target, path)
    unlinkSync(path)
    renameSync(path + "-kept", path)
  }
  for (;;) {
    try { swap(root + "/send", outside) } catch {}
    try { swap(root + "/send/file", outside + "/file") } catch {}
    Atomics.add(count, 0, 2)
  }
`

const startSwapper = (root: string, outside: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const swaps = new SharedArrayBuffer(4)
        return { swaps, worker: new Worker(SWAPPER, { eval: true, workerData: { root, outside, swaps } }) }
      }),
      ({ worker }) => Effect.promise(() => worker.terminate())
    ),
    ({ swaps }) => new Int32Array(swaps)
  )

describe("Workspace", () => {
  it.live(
    `R39 reads and writes no byte outside through ${SWAPS} racing swaps`,
    () =>
      Effect.gen(function* () {
        const { root, outside } = yield* temporaryWorkspace
        mkdirSync(join(root, "send"))
        writeFileSync(join(root, "send/file"), "inside")
        writeFileSync(join(outside, "outside-only"), "")
        yield* Effect.gen(function* () {
          const workspace = yield* Workspace
          const swaps = yield* startSwapper(root, outside)
          const counts = { read: 0, written: 0, refused: 0, leaked: 0 }
          for (let turn = 0; Atomics.load(swaps, 0) < SWAPS || counts.read < 100 || counts.written < 100; turn++) {
            const read = yield* Effect.result(workspace.read("send/file"))
            if (Result.isFailure(read)) counts.refused++
            else if (Buffer.from(read.success.bytes).toString("utf8") === OUTSIDE_TEXT) counts.leaked++
            else counts.read++
            const path = turn % 2 === 0 ? "send/file" : `send/new-${turn % 8}/file`
            const write = yield* Effect.result(
              workspace.update(path, () => Result.succeed(Buffer.from(`inside ${turn}`)))
            )
            if (Result.isFailure(write)) counts.refused++
            else counts.written++
            const list = yield* Effect.result(workspace.list("send"))
            if (Result.isSuccess(list) && list.success.entries.includes("outside-only")) counts.leaked++
          }
          assert.strictEqual(counts.leaked, 0)
          assert.isAbove(counts.refused, 0)
        }).pipe(Effect.provide(Workspace.layer({ root })))
        assert.deepStrictEqual(readdirSync(outside).sort(), ["file", "outside-only"])
        assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), OUTSIDE_TEXT)
      }),
    60_000
  )
})
