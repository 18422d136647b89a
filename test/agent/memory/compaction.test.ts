/** Working memory: what leaves a lane's window, what stands for it, and what never leaves. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { Message } from "#src/agent/model/Conversation.ts"
import { foldedCount, type Folding } from "#src/agent/memory/compaction.ts"
import { COMPACTION_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { makeMemoryControlPlane, type MemoryControlPlane, SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const config = { ...agentConfig(), memory: { ...agentConfig().memory, event_window: 8 } }
const isCompaction = (messages: ReadonlyArray<Message>) => messages[0]?.content === COMPACTION_INSTRUCTIONS
const summaryIn = (messages: ReadonlyArray<Message>) =>
  messages.find(({ content }) => content?.startsWith("<choir-note>\nReference summary") === true)?.content

/** A model that answers, and that keeps the memory by calling the delta tool. */
const keeper =
  (seen: Array<ReadonlyArray<Message>>, delta: (messages: ReadonlyArray<Message>) => Schema.Json): Script =>
  (messages) =>
    Effect.sync(() => {
      seen.push(messages)
      if (!isCompaction(messages)) return says(`heard ${messages.findLast(({ role }) => role === "user")?.content}`)
      return calls(["choir.memory.delta", delta(messages)])
    })

const hashesOf = (events: ReadonlyArray<ChoirEvent>) => {
  let hash: Uint8Array = genesis(SESSION)
  return events.map((event) => hex((hash = chainEvent(hash, event).hash)))
}

const talk = Effect.fnUntraced(function* (plane: MemoryControlPlane, times: number) {
  for (let said = 0; said < times; said++) {
    const before = spoken(plane.events).length
    yield* plane.say(`message ${before}`)
    yield* plane.until((events, state) => spoken(events).length === before + 1 && quiet(state))
  }
})

describe("a full window", () => {
  it.effect("gives way to a summary that later prompts show in its place, while nothing of the log is lost", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const seen: Array<ReadonlyArray<Message>> = []
      const script = keeper(seen, (messages) => {
        const [hash] = /\b[0-9a-f]{12}\b/u.exec(messages[1]?.content ?? "") ?? []
        const fact = { key: "first", value: "message 0", source_event: hash ?? "" }
        return {
          mode: "append",
          summary_update: "They said hello.",
          add_fact: fact,
          add_references: [hash ?? "", "ffffffffffff"]
        }
      })
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* talk(plane, 3)
      yield* plane.until((events) => ofType(events, "CompactionCommitted").length === 1)
      yield* talk(plane, 1)
      const [compaction] = ofType(plane.events, "CompactionCommitted")
      const hashes = hashesOf(plane.events)
      const { boundary, summary, window } = plane.state().edge
      assert.strictEqual(summary.summary, "They said hello.")
      assert.deepStrictEqual<unknown>(summary.facts, [{ key: "first", value: "message 0", source_event: hashes[0] }])
      assert.deepStrictEqual<unknown>(summary.referenced_events, [hashes[0]])
      assert.strictEqual(boundary, compaction?.payload.boundary_rev)
      assert.isTrue(window.every((rev) => rev > boundary))
      const last = seen.at(-1) ?? []
      assert.include(summaryIn(last), "They said hello.")
      assert.notInclude(JSON.stringify(last.slice(2)), "message 0")
      assert.strictEqual(ofType(plane.events, "UserMsg")[0]?.payload.text, "message 0")
      assert.strictEqual(last.at(-1)?.content, "message 3")
    })
  )

  it.effect("stays whole and in use while the compaction runs, and changes at once when it is there", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const held = yield* Deferred.make<void>()
      const seen: Array<ReadonlyArray<Message>> = []
      const answer = keeper(seen, () => ({ mode: "append", summary_update: "Short." }))
      const script: Script = (messages, tools) =>
        isCompaction(messages) ? Effect.andThen(Deferred.await(held), answer(messages, tools)) : answer(messages, tools)
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* talk(plane, 5)
      const during = seen.at(-1) ?? []
      assert.isUndefined(summaryIn(during))
      assert.include(JSON.stringify(during), "message 0")
      yield* Deferred.succeed(held, undefined)
      yield* plane.until((events) => ofType(events, "CompactionCommitted").length > 0)
      yield* talk(plane, 1)
      assert.include(summaryIn(seen.at(-1) ?? []), "Short.")
    })
  )

  it.effect("keeps its contents when the call fails or says nothing usable, and tries again when it has grown", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let failures = 0
      const seen: Array<ReadonlyArray<Message>> = []
      const answer = keeper(seen, () => ({ mode: "append", summary_update: "At last." }))
      const script: Script = (messages, tools) => {
        if (!isCompaction(messages) || failures === 3) return answer(messages, tools)
        failures++
        if (failures === 1) return Effect.succeed({ finish_reason: "error", error: { kind: "http", message: "500" } })
        return Effect.succeed(
          failures === 2 ? says("I would rather write prose.") : calls(["choir.memory.delta", { mode: 3 }])
        )
      }
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* talk(plane, 3)
      yield* plane.until(() => failures === 1)
      const window = plane.state().edge.window.length
      assert.isAtLeast(window, 8)
      yield* talk(plane, 6)
      yield* plane.until((events) => ofType(events, "CompactionCommitted").length > 0)
      assert.strictEqual(failures, 3)
      assert.strictEqual(
        ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.purpose === "compaction").length,
        ofType(plane.events, "CompactionCommitted").length + 3
      )
    })
  )

  it.effect("is compacted for a job by its own model from its own events, and its task stays", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const prompts: Array<ReadonlyArray<Message>> = []
      let steps = 0
      const look = testTool("mem.look", () => Effect.succeed({ status: "success", summary: `look ${++steps}` }), {
        effect: "none",
        readOnly: true
      })
      const script: Script = (messages) =>
        Effect.map(Effect.sleep("10 millis"), () => {
          if (isCompaction(messages))
            return calls(["choir.memory.delta", { mode: "append", summary_update: "Looked." }])
          if (isCore(messages)) {
            prompts.push(messages)
            return steps < 12 ? calls(["mem.look", { steps }]) : says("seen it all")
          }
          return messages.at(-1)?.role === "user" && !messages.at(-1)?.content?.startsWith("<choir-note>")
            ? calls(["choir.core.spawn", { job_name: "eye", task_spec: "look twelve times" }])
            : says("ok")
        })
      yield* Effect.forkScoped(runAgent({ plane, script, config, tools: [look] }))
      yield* plane.say("go")
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      const compactions = ofType(plane.events, "CompactionCommitted").filter(({ lane }) => lane === "core:eye")
      assert.isAtLeast(compactions.length, 1)
      const last = prompts.at(-1) ?? []
      assert.include(last[1]?.content, "look twelve times")
      assert.include(last[2]?.content, "Looked.")
      assert.notInclude(JSON.stringify(last.slice(3)), "look 1\\")
      assert.strictEqual(plane.state().edge.boundary, 0)
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "completed")
    })
  )

  it.effect("is full by tokens as well, by the share of the context that config.json says", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const small = agentConfig()
      const models = Object.fromEntries(
        Object.entries(small.models).map(([name, model]) => [name, { ...model, context_window: 3000, max_tokens: 500 }])
      )
      const seen: Array<ReadonlyArray<Message>> = []
      const script = keeper(seen, () => ({ mode: "append", summary_update: "Much was said." }))
      yield* Effect.forkScoped(runAgent({ plane, script, config: { ...small, models } }))
      yield* plane.say("hello")
      yield* plane.until((_, state) => quiet(state) && state.rev > 2)
      assert.strictEqual(ofType(plane.events, "CompactionCommitted").length, 0)
      yield* plane.say("different words every time ".repeat(500))
      yield* plane.until((events) => ofType(events, "CompactionCommitted").length === 1)
      assert.isBelow(plane.state().edge.window.length, 8)
    })
  )
})

describe("an order to compact", () => {
  it.effect("is obeyed however small the window is, and ends in an event when there is nothing to do", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script = keeper([], () => ({ mode: "append", summary_update: "Hello." }))
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* plane.push({ type: "Compact", signal_id: "1" as never })
      yield* plane.until((_, state) => state.signals.includes("1"))
      assert.deepStrictEqual(ofType(plane.events, "CompactionCommitted")[0]?.payload.delta, { mode: "append" })
      yield* talk(plane, 1)
      yield* plane.push({ type: "Compact", signal_id: "2" as never })
      yield* plane.push({ type: "Compact", signal_id: "3" as never, lane: "core:none" as never })
      yield* plane.until((_, state) => ["2", "3"].every((id) => state.signals.includes(id)))
      assert.strictEqual(plane.state().edge.summary.summary, "Hello.")
      assert.deepStrictEqual(plane.state().edge.window, [])
    })
  )

  it.effect("survives a crash: the summary is a fold, and the order is obeyed in the next epoch", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script = keeper([], () => ({ mode: "append", summary_update: "Kept." }))
      const never: Script = (messages, tools) => (isCompaction(messages) ? Effect.never : script(messages, tools))
      const life = yield* Effect.forkScoped(runAgent({ plane, script: never }))
      yield* talk(plane, 1)
      yield* plane.push({ type: "Compact", signal_id: "1" as never })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(life)
      yield* Effect.forkScoped(runAgent({ plane, script, epoch: 2 }))
      yield* plane.until((_, state) => state.signals.includes("1"))
      assert.strictEqual(plane.state().edge.summary.summary, "Kept.")
    })
  )
})

describe("foldedCount", () => {
  const event = (rev: number, event_type: string, payload: object): Folding => ({
    event: { rev, event_type, payload } as unknown as ChoirEvent,
    hash: "0".repeat(64),
    messages: [{ role: "user", content: "x".repeat(100) }]
  })
  const calling = (rev: number, ...ids: ReadonlyArray<string>) =>
    event(rev, "ModelOutput", { tool_calls: ids.map((call_id) => ({ call_id })) })
  const result = (rev: number, call_id: string) => event(rev, "ToolResultCommitted", { call_id })
  const window = [
    calling(1, "a", "b"),
    result(2, "a"),
    result(3, "b"),
    calling(4, "c"),
    result(5, "c"),
    event(6, "UserMsg", {})
  ]
  const all = { events: 0, chars: 0 }

  it("never parts a result from its call", () => {
    for (let limit = 0; limit <= 7; limit++)
      assert.strictEqual(foldedCount(window, all, limit, 100_000), limit < 3 ? 0 : limit < 5 ? 3 : limit < 6 ? 5 : 6)
  })
  it("folds no more than is asked for, and no more than one prompt holds", () => {
    assert.strictEqual(foldedCount(window, { events: 4, chars: 100_000 }, 99, 100_000), 3)
    assert.strictEqual(foldedCount(window, { events: 6, chars: 200 }, 99, 100_000), 5)
    assert.strictEqual(foldedCount(window, all, 99, 600), 3)
    assert.strictEqual(foldedCount(window, all, 99, 10), 0)
  })
})
