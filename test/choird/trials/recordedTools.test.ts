import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, EDGE } from "#schema/Ids.ts"
import { ToolManifest } from "#schema/Tool.ts"
import { withRecord } from "#src/choird/trials/compareTrials.ts"
import { findToolSessions, worseForCalls } from "#src/choird/trials/recordedTools.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, modelOutput, newTalk, stores, Talk, userMsg } from "../../support/stores.ts"

const manifest = (input_schema: object, effect = "none", more: object = {}) =>
  Schema.decodeUnknownSync(ToolManifest)({
    llm: { name: "notes.count", description: "Counts notes.", input_schema },
    runtime: { exec_path: "notes.count", effect, ...more }
  })

const ANY = manifest({ type: "object" })
const FOLDER = manifest({ type: "object", properties: { folder: { type: "string" } }, required: ["folder"] })

describe("a proposed tool", () => {
  it("is worse where it refuses calls that today's took", () => {
    assert.deepStrictEqual(worseForCalls(ANY, FOLDER, [{ folder: "." }]), [])
    const [reason, ...more] = worseForCalls(ANY, FOLDER, [{ folder: "." }, {}, { folder: 3 }])
    assert.match(reason ?? "", /^refuses 2 of 3 calls that were made then: .*folder/su)
    assert.lengthOf(more, 0)
    // Today's refused these as well.
    assert.deepStrictEqual(worseForCalls(FOLDER, FOLDER, [{}]), [])
    assert.match(worseForCalls(undefined, FOLDER, [{}])[0] ?? "", /^refuses 1 of 1 call that was made then/u)
  })

  it("is worse where its calls act outside and nobody would be asked any more", () => {
    const outside = manifest({ type: "object" }, "external")
    assert.deepStrictEqual(worseForCalls(outside, ANY, [{}]), [
      "would no longer ask a person about 1 call that was made then: today's manifest says that they act outside, and this one gives them the effect none"
    ])
    assert.deepStrictEqual(worseForCalls(outside, ANY, []), [])
  })

  it("is worse where it may do more than today's, or marks strangers' text no more", () => {
    const more = (runtime: object) => worseForCalls(ANY, manifest({ type: "object" }, "none", runtime), [{}])
    assert.deepStrictEqual(worseForCalls(ANY, manifest({ type: "object" }, "external"), [{}]), [
      "can do fs:write, net, which today's cannot"
    ])
    assert.deepStrictEqual(more({ network: true }), [
      "can do net, which today's cannot",
      "reaches the network, which today's does not"
    ])
    assert.deepStrictEqual(more({ secret_resources: ["key"] }), [
      "can do env:read, which today's cannot",
      "is given key, which today's is not"
    ])
    const marked = manifest({ type: "object" }, "none", { untrusted: true, secret_resources: ["key"] })
    const two = manifest({ type: "object" }, "none", { untrusted: true, secret_resources: ["key", "other"] })
    assert.deepStrictEqual(worseForCalls(marked, two, [{}]), ["is given other, which today's is not"])
    assert.deepStrictEqual(worseForCalls(marked, ANY, [{}]), ["no longer marks its results as text from strangers"])
    assert.deepStrictEqual(worseForCalls(ANY, marked, []).length, 2)
    assert.deepStrictEqual(more({}), [])
  })

  it("is judged by its calls, the run of a skill that made them and its program", () => {
    const worse = { verdict: "worse", reasons: ["ends as failed"] } as const
    const better = { verdict: "better", reasons: ["succeeds"] } as const
    const same = { verdict: "same", reasons: ["gives other values"] } as const
    const unknown = { verdict: "not_rehearsed", reasons: ["x"] } as const
    assert.deepStrictEqual(withRecord(["refuses"], worse), { verdict: "worse", reasons: ["refuses", "ends as failed"] })
    assert.deepStrictEqual(withRecord(["refuses"], unknown), { verdict: "worse", reasons: ["refuses"] })
    assert.deepStrictEqual(withRecord([], better, worse), worse)
    assert.deepStrictEqual(withRecord([], same, better), better)
    assert.deepStrictEqual(withRecord([]), { verdict: "same", reasons: [] })
  })

  it("is not called the same where nothing could be repeated", () => {
    const unknown = { verdict: "not_rehearsed", reasons: ["today's skill ends as failed: x"] } as const
    assert.deepStrictEqual(withRecord([], unknown), unknown)
    assert.deepStrictEqual(withRecord([], { verdict: "same", reasons: [] }, unknown), {
      verdict: "same",
      reasons: ["was compared only in part: today's skill ends as failed: x"]
    })
  })
})

const answered = (id: string, output: object): EventDraft => ({
  event_type: "ToolResultCommitted",
  lane: EDGE,
  payload: { call_id: CallId.make(id), status: "success", summary: "counted", output: output as never, duration_ms: 1 }
})

const granted = (id: string): EventDraft => ({
  event_type: "ToolCallCommitted",
  lane: EDGE,
  payload: { call_id: CallId.make(id), locks: [] }
})

const called = (id: string, tool: string, input: object): EventDraft => ({
  event_type: "ToolCallRequested",
  lane: EDGE,
  payload: { call_id: CallId.make(id), tool, input: input as never, effect: "none", locks: [] }
})

const calling = (id: string, tool: string, input: object): EventDraft => {
  const output = modelOutput(`out-${id}`, "")
  const tool_calls = [{ call_id: CallId.make(id), name: tool.replaceAll(".", "-"), input: input as never }]
  return {
    ...output,
    payload: { ...output.payload, finish_reason: "tool_calls", tool_calls }
  } as EventDraft
}

describeStores("Recorded calls of a tool", (it) => {
  it.effect("are those of other sessions of the agent, the newest first", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const events = yield* EventStore
      const first = yield* newTalk
      const { agent_id } = first.caller
      const talkIn = Effect.fnUntraced(function* (tool: string, input: object) {
        const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
        const talk = new Talk(session_id, agent_id)
        talk.commit(
          userMsg(1),
          calling("c1", tool, input),
          called("c1", tool, input),
          granted("c1"),
          answered("c1", { notes: 3 })
        )
        yield* events.append(talk.caller, talk.heartbeat(0))
        yield* sessions.end(session_id, "stopped")
        return session_id
      })
      yield* sessions.end(first.caller.session_id, "stopped")
      const old = yield* talkIn("notes.count", { folder: "a" })
      yield* talkIn("choir.fs.read", { path: "b" })
      const newest = yield* talkIn("notes.count", { folder: "c" })
      const held_out = yield* talkIn("notes.count", { folder: "d" })
      const found = yield* Stream.runCollect(findToolSessions(agent_id, "notes.count", { held_out, last: 5 }))
      const inputs = new Map(found.map(({ calls, session_id }) => [session_id, calls.map(({ input }) => input)]))
      assert.sameMembers([...inputs.keys()], [newest, old])
      assert.deepStrictEqual(inputs.get(old), [{ folder: "a" }])
      assert.deepStrictEqual(found[0]?.calls[0]?.result, { status: "success", output: { notes: 3 } })
      assert.isTrue(found.every(({ run }) => run === undefined))
      const only = findToolSessions(agent_id, "notes.count", { held_out, last: 1 })
      assert.strictEqual(yield* Stream.runCount(only), 1)
    }).pipe(Effect.provide(stores))
  )

  it.effect("are read up to a limit in bytes, the newest ones, and a session at a time", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const events = yield* EventStore
      const sql = yield* SqlClient.SqlClient
      const held = yield* newTalk
      const { agent_id, session_id: held_out } = held.caller
      yield* sessions.end(held_out, "stopped")
      const ids = ["c1", "c2", "c3"]
      for (const n of [1, 2]) {
        const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
        const talk = new Talk(session_id, agent_id)
        const inputs = ids.map((id) => ({ id, folder: `${n}${id}`.padEnd(2000, "x") }))
        const output = calling("c1", "notes.count", {})
        const tool_calls = inputs.map(({ id, ...input }) => ({ call_id: CallId.make(id), name: "notes-count", input }))
        talk.commit(
          userMsg(1),
          { ...output, payload: { ...output.payload, tool_calls } } as EventDraft,
          ...inputs.map(({ id, ...input }) => called(id, "notes.count", input))
        )
        yield* events.append(talk.caller, talk.heartbeat(0))
        yield* sessions.end(session_id, "stopped")
      }
      const found = findToolSessions(agent_id, "notes.count", { held_out, last: 5, bytes_max: 5000 })
      const reads: Array<number> = []
      const read = yield* found.pipe(
        Stream.mapEffect((session) =>
          Effect.gen(function* () {
            // The calls of the sessions after it are not read yet, so these are what they become.
            const gone = yield* sql`DELETE FROM choir_control.session_events
              WHERE event_type = 'ToolCallRequested' AND session_id <> ${session.session_id} RETURNING 1`
            reads.push(gone.length)
            return session.calls.map(({ input }) => JSON.stringify(input).slice(11, 14))
          })
        ),
        Stream.runCollect
      )
      assert.deepStrictEqual(read, [["2c3", "2c2"]])
      assert.isAbove(reads[0] ?? 0, 0)
    }).pipe(Effect.provide(stores))
  )
})
