import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import { HttpServerResponse } from "effect/http"
import {
  makeRequestMemory,
  REPLIES_BYTES_MAX,
  REQUEST_ID_MS_MAX,
  REQUEST_IDS_MAX
} from "#src/choird/listeners/RequestMemory.ts"
import { makeRandom } from "../../support/history.ts"

const reply = HttpServerResponse.text("done")

const lead = (memory: ReturnType<typeof makeRequestMemory>, id: string, now_ms: number) => {
  const found = memory.begin(id, "d", true, now_ms)
  assert.strictEqual(found.type, "lead")
  if (found.type !== "lead") throw new Error("unreachable")
  return found.running
}

describe("makeRequestMemory", () => {
  it("lets one execution lead and the others wait for its reply (R28)", () => {
    const memory = makeRequestMemory()
    const running = lead(memory, "a", 0)
    const waiter = memory.begin("a", "d", true, 1)
    assert.deepStrictEqual(waiter, { type: "wait", running })
    memory.finish("a", running, reply, 2)
    assert.deepStrictEqual(Effect.runSyncExit(Deferred.await(running)), Exit.succeed(reply))
    assert.deepStrictEqual(memory.begin("a", "d", true, 3), { type: "reply", reply })
    assert.deepStrictEqual(memory.begin("a", "other", true, 3), { type: "reused" })
  })

  it("runs a refused request again, and still refuses its id to another", () => {
    const memory = makeRequestMemory()
    const running = lead(memory, "a", 0)
    memory.finish("a", running, undefined, 1)
    assert.deepStrictEqual(Effect.runSyncExit(Deferred.await(running)), Exit.succeed(undefined))
    assert.deepStrictEqual(memory.begin("a", "other", true, 2), { type: "reused" })
    lead(memory, "a", 2)
  })

  it("forgets after ten minutes and keeps at most 10,000 ids (R28)", () => {
    const memory = makeRequestMemory()
    memory.finish("a", lead(memory, "a", 0), reply, 0)
    assert.strictEqual(memory.begin("a", "d", true, REQUEST_ID_MS_MAX - 1).type, "reply")
    assert.strictEqual(memory.begin("a", "other", false, REQUEST_ID_MS_MAX).type, "run")
    for (let id = 0; id < 2 * REQUEST_IDS_MAX; id += 1) memory.begin(String(id), "d", false, REQUEST_ID_MS_MAX)
    assert.isAtMost(memory.size(), REQUEST_IDS_MAX + 1)
    assert.strictEqual(memory.begin(String(2 * REQUEST_IDS_MAX - 1), "x", false, REQUEST_ID_MS_MAX).type, "reused")
  })

  it("bounds the bytes of its replies, the oldest going first", () => {
    const memory = makeRequestMemory()
    const big = HttpServerResponse.text("x".repeat(REPLIES_BYTES_MAX / 2))
    for (const id of ["a", "b", "c"]) memory.finish(id, lead(memory, id, 0), big, 0)
    assert.strictEqual(memory.begin("c", "d", true, 0).type, "reply")
    assert.strictEqual(memory.begin("a", "d", true, 0).type, "lead")
  })

  it("wakes those who wait for an execution whose id was crowded out", () => {
    const memory = makeRequestMemory()
    const running = lead(memory, "a", 0)
    for (let id = 0; id <= REQUEST_IDS_MAX; id += 1) memory.begin(String(id), "d", false, 1)
    memory.finish("a", running, reply, 2)
    assert.deepStrictEqual(Effect.runSyncExit(Deferred.await(running)), Exit.succeed(reply))
    assert.strictEqual(memory.begin("a", "other", false, 3).type, "run")
  })

  it("answers 10,000 random requests as a plain list of what was asked would (R28)", () => {
    const random = makeRandom(28)
    const memory = makeRequestMemory()
    const asked = new Map<string, { readonly digest: string; readonly replies: Array<string> }>()
    let executions = 0
    for (let index = 0; index < 10_000; index++) {
      // Ids are few and repeat; a body sometimes differs from the first one of its id.
      const id = `id-${Math.floor(random() * 2000)}`
      const digest = random() < 0.2 ? "other" : "body"
      const known = asked.get(id)
      const found = memory.begin(id, digest, true, index)
      if (known === undefined) {
        assert.strictEqual(found.type, "lead")
        if (found.type !== "lead") continue
        const text = `reply ${++executions}`
        memory.finish(id, found.running, HttpServerResponse.text(text), index)
        asked.set(id, { digest, replies: [text] })
      } else if (known.digest !== digest) {
        assert.strictEqual(found.type, "reused")
      } else {
        assert.strictEqual(found.type, "reply")
        if (found.type === "reply" && found.reply.body._tag === "Uint8Array")
          assert.strictEqual(Buffer.from(found.reply.body.body).toString(), known.replies[0])
      }
    }
    assert.strictEqual(executions, asked.size)
  })
})
