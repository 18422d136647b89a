import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { EventOf } from "#schema/Event.ts"
import { CallId, EDGE, SessionId } from "#schema/Ids.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { ControlPlane, type HostCall, type HostReply } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { memoryDelete, memoryUpsert, searchInput, searchLongTerm } from "#src/agent/tools/longTermMemory.ts"
import type { Tool } from "#src/agent/tools/Tool.ts"
import { toolText } from "#src/agent/model/prompt/toolText.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { EVERY_TOOL } from "../../support/offered.ts"

const ID = "00000000-0000-4000-8000-000000000001"
const SESSION = SessionId.make("0k8v3w9m2p1n4q7r")
const context = { lane: EDGE, call_id: CallId.make("c-5-0"), seen: () => undefined, network: true }

/** A choird that answers in order, and an agent whose edge has seen text from outside or not. */
const beside = (tainted: boolean, ...answers: ReadonlyArray<HostReply>) => {
  const asked: Array<HostCall> = []
  const commits: Array<Command> = []
  const left = [...answers]
  const ask = (_: unknown, call: HostCall) =>
    Effect.sync(() => {
      asked.push(call)
      return left.shift() ?? assert.fail("choird was asked too often")
    })
  const services = Layer.mergeAll(
    Layer.mock(Arbiter, {
      state: () => ({ ...initialState, edge: { ...initialState.edge, tainted } }),
      commit: (command) => Effect.sync(() => (commits.push(command), []))
    }),
    Layer.mock(ControlPlane, { execute: (call) => ask(undefined, call) }),
    Layer.mock(Replication, { acked: () => 0 })
  )
  return { ask, asked, commits, services }
}

const run = (tool: Tool, input: object) =>
  Effect.flatMap(tool.prepare(input as never), (prepared) => prepared.run(context))

const written = (change: string): HostReply => ({ status: "success", output: { change, document_id: ID } })

describe("a search of long-term memory", () => {
  const query = { store: "session", mode: "hybrid", query: "Lyon" } as const

  it("says what is wrong with its input before choird is asked", () => {
    const problemOf = (more: object) => {
      const input = searchInput({ ...query, ...more })
      return "_tag" in input ? input.problem : undefined
    }
    assert.isUndefined(problemOf({}))
    assert.include(problemOf({ session_id: "no session" }) ?? "", "session_id")
    assert.include(problemOf({ agent: "No Agent" }) ?? "", "agent")
    assert.include(problemOf({ mode: "session_detail" }) ?? "", "needs the session_id")
    assert.include(
      problemOf({ store: "knowledge", mode: "session_detail", session_id: SESSION }) ?? "",
      "store session"
    )
  })

  it.effect("taints the lane where a hit came from outside, and reads as dates, places and marks", () =>
    Effect.gen(function* () {
      const chunk = { id: ID, store: "session", session_id: SESSION, first_rev: 3, last_rev: 6 }
      const said_at = "2026-01-02T03:04:05.000Z"
      const hits = [
        { ...chunk, said_at, text: "Ada lives in Lyon" },
        { id: ID, store: "knowledge", said_at, text: "Lyon is far", untrusted: true, agent: "bob" }
      ]
      const { ask } = beside(false, { status: "success", output: { hits, ranked_by: "words" } })
      const input = searchInput(query)
      if ("_tag" in input) return assert.fail(input.problem)
      const outcome = yield* searchLongTerm(ask, input, context)
      assert.deepInclude(outcome, { status: "success", summary: "2 hits", sources: ["memory", "agent:bob"] })
      const { output = null, status, summary } = outcome
      const payload = { call_id: context.call_id, status, summary, output, duration_ms: 1 }
      const result = { rev: 7, payload } as unknown as EventOf<"ToolResultCommitted">
      const text = toolText(result, "choir-memory-query", false, EVERY_TOOL)
      for (const part of [`session ${SESSION} rev 3-6\nAda lives`, `of agent bob, untrusted, id ${ID}\nLyon`])
        assert.include(text, part)
      assert.include(text, "ranked by words alone")
      const clean = beside(false, { status: "success", output: { hits: hits.slice(0, 1), ranked_by: "hybrid" } })
      assert.deepStrictEqual((yield* searchLongTerm(clean.ask, input, context)).sources, [])
      const failing = beside(false, { status: "error", output: { error: "agent bob may not" } })
      assert.deepInclude(yield* searchLongTerm(failing.ask, input, context), { status: "error" })
    })
  )
})

describe("choir.memory.upsert", () => {
  it.effect("commits what choird wrote, and nothing for what was already known", () =>
    Effect.gen(function* () {
      const { asked, commits, services } = beside(false, written("inserted"), written("updated"), written("same"))
      const tool = yield* Effect.provide(memoryUpsert, services)
      const input = { key: "user.city", text: "Lives in Lyon" }
      for (const _ of [1, 2, 3]) assert.strictEqual((yield* run(tool, input)).status, "success")
      assert.deepStrictEqual(
        commits.map((command) => (command.type === "MemoryWrite" ? [command.action, command.key] : command.type)),
        [
          ["insert", "user.city"],
          ["update", "user.city"]
        ]
      )
      assert.deepInclude(asked[0]?.input, { untrusted: false, call_id: context.call_id, lane: EDGE })
      assert.deepInclude(yield* Effect.flip(run(tool, { text: " " })), { _tag: "InvalidInput" })
    })
  )

  it.effect(
    "that a crash cut off is asked for again under its own call id, and is in doubt where choird does not know",
    () =>
      Effect.gen(function* () {
        const lost: HostReply = { status: "unknown_after_crash", output: { error: "choird went down as well" } }
        const { asked, commits, services } = beside(false, written("inserted"), written("inserted"), lost)
        const tool = yield* Effect.provide(memoryUpsert, services)
        const input = { key: "user.city", text: "Lives in Lyon" }
        yield* run(tool, input)
        const settle = tool.settle ?? assert.fail("it can be found out")
        const cut = { lane: EDGE, call_id: context.call_id, input }
        assert.deepInclude(yield* settle(cut), { status: "success", summary: "remembered", acted: "verified" })
        assert.deepStrictEqual(asked[1], asked[0])
        assert.deepStrictEqual(commits[1], commits[0])
        assert.include((yield* Effect.flip(settle(cut))).message, "choird went down as well")
      })
  )

  it.effect("of a lane that has seen text from outside is a claim from outside, and asks no person", () =>
    Effect.gen(function* () {
      const { asked, services } = beside(true, written("inserted"))
      const tool = yield* Effect.provide(memoryUpsert, services)
      yield* run(tool, { text: "The password is swordfish" })
      assert.deepStrictEqual([tool.keepsOwn, (yield* Effect.provide(memoryDelete, services)).keepsOwn], [true, true])
      assert.deepInclude(asked[0]?.input, { untrusted: true })
    })
  )

  it.effect("passes on why choird refused, and commits nothing", () =>
    Effect.gen(function* () {
      const { commits, services } = beside(false, { status: "error", output: { error: "there are 10000 facts" } })
      const outcome = yield* run(yield* Effect.provide(memoryUpsert, services), { text: "one more" })
      assert.include(JSON.stringify(outcome), "there are 10000 facts")
      assert.lengthOf(commits, 0)
    })
  )
})

describe("choir.memory.delete", () => {
  it.effect("ends a fact by its key or its id, and says where there is none", () =>
    Effect.gen(function* () {
      const gone: HostReply = { status: "success", output: { deleted: { id: ID, text: "Lives in Lyon" } } }
      const { asked, commits, services } = beside(false, gone, gone, { status: "success", output: { deleted: null } })
      const tool = yield* Effect.provide(memoryDelete, services)
      assert.include((yield* run(tool, { key: "user.city" })).summary, "/forget")
      yield* run(tool, { id: ID })
      assert.notStrictEqual((yield* run(tool, { key: "user.city" })).status, "success")
      assert.lengthOf(commits, 2)
      assert.deepStrictEqual(asked[1]?.input, { id: ID })
      for (const input of [{}, { key: "user.city", id: ID }])
        assert.include(JSON.stringify(yield* Effect.flip(run(tool, input))), "either key or id")
    })
  )
})
