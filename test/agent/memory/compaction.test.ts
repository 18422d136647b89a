/** Working memory: what leaves a lane's window, what stands for it, and what never leaves. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { leavingCount } from "#src/agent/memory/compaction.ts"
import type { Folding } from "#src/agent/memory/Folding.ts"
import { withLossNote } from "#src/agent/memory/lossNote.ts"
import { emptySummary, SUMMARY_CHARS_MAX, SUMMARY_FACTS_MAX } from "#src/shared/session/memory.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { makeMemoryControlPlane, type MemoryControlPlane, SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { EVERY_TOOL } from "../../support/offered.ts"
import { calls, isCompaction, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

/** A window is full after a few messages, and four events stay. */
const config = { ...agentConfig(), memory: { ...agentConfig().memory, event_window: 4, window_tokens_max: 150 } }
const summaryIn = (messages: ReadonlyArray<Message>) =>
  messages.find(({ content }) => content?.startsWith("<choir-note>\nReference summary") === true)?.content
const LONG = " and so on".repeat(12)

/** A model that answers, and that keeps the memory by calling the delta tool. */
const keeper =
  (seen: Array<ReadonlyArray<Message>>, delta: (messages: ReadonlyArray<Message>) => Schema.Json): Script =>
  (messages) =>
    Effect.sync(() => {
      seen.push(messages)
      if (!isCompaction(messages))
        return says(`heard ${messages.findLast(({ role }) => role === "user")?.content?.slice(0, 9)}`)
      return calls(["choir.memory.delta", delta(messages)])
    })

const hashesOf = (events: ReadonlyArray<ChoirEvent>) => {
  let hash: Uint8Array = genesis(SESSION)
  return events.map((event) => hex((hash = chainEvent(hash, event).hash)))
}

const talk = Effect.fnUntraced(function* (plane: MemoryControlPlane, times: number) {
  for (let said = 0; said < times; said++) {
    const before = spoken(plane.events).length
    yield* plane.say(`message ${before}${LONG}`)
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
        const [, hash = ""] = /message 0.*hash ([0-9a-f]{12})/u.exec(messages.at(-1)?.content ?? "") ?? []
        if (hash === "") return { mode: "append", summary_update: "They went on." }
        return {
          mode: "append",
          summary_update: "They said hello.",
          add_facts: [
            { key: "first", value: "message 0", source_event: hash },
            { key: "goal", value: "to talk", pinned: true }
          ],
          add_references: [hash, "ffffffffffff"]
        }
      })
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* talk(plane, 6)
      const [compaction] = ofType(plane.events, "CompactionCommitted")
      const hashes = hashesOf(plane.events)
      const { boundary, summary, window } = plane.state().edge
      assert.include(summary.summary, "They said hello.")
      assert.deepStrictEqual<unknown>(summary.facts[0], { key: "first", value: "message 0", source_event: hashes[0] })
      assert.deepStrictEqual<unknown>(summary.facts[1], { key: "goal", value: "to talk", pinned: true })
      assert.deepStrictEqual<unknown>(summary.referenced_events[0], hashes[0])
      assert.isAbove(boundary, compaction?.payload.boundary_rev ?? 0)
      assert.isTrue(window.every((rev) => rev > boundary))
      const last = seen.at(-1) ?? []
      assert.include(summaryIn(last), "They said hello.")
      assert.include(summaryIn(last), "goal: to talk (pinned)")
      assert.notInclude(JSON.stringify(last.slice(2)), "message 0")
      assert.strictEqual(ofType(plane.events, "UserMsg")[0]?.payload.text, `message 0${LONG}`)
      assert.strictEqual(last.at(-1)?.content, `message 5${LONG}`)
    })
  )

  it.effect("is asked about at the end of the very prompt that the lane goes on from", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const seen: Array<ReadonlyArray<Message>> = []
      const script = keeper(seen, () => ({ mode: "append", summary_update: "Short." }))
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* talk(plane, 5)
      const at = seen.findIndex(isCompaction)
      const before = seen[at - 1] ?? []
      assert.deepStrictEqual(seen[at]?.slice(0, before.length), before)
      assert.include(seen[at]?.at(-1)?.content, `Your summary has 0 of ${SUMMARY_CHARS_MAX} characters`)
    })
  )

  it.effect("lets the lane go on while the compaction runs, until its next prompt would be over the limit", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const held = yield* Deferred.make<void>()
      const asked = yield* Deferred.make<void>()
      const seen: Array<ReadonlyArray<Message>> = []
      const answer = keeper(seen, () => ({ mode: "append", summary_update: "Short." }))
      const script: Script = (messages, tools) =>
        isCompaction(messages)
          ? Effect.andThen(
              Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(held)),
              answer(messages, tools)
            )
          : answer(messages, tools)
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* talk(plane, 1)
      yield* plane.push({ type: "Compact", signal_id: "1" as never })
      yield* Deferred.await(asked)
      yield* talk(plane, 2)
      assert.isUndefined(summaryIn(seen.at(-1) ?? []))
      const before = spoken(plane.events).length
      for (let more = 0; more < 6; more++) yield* plane.say(`more ${more}${LONG}`)
      yield* Effect.sleep("10 seconds")
      assert.isBelow(spoken(plane.events).length, before + 6, "the lane waits at the limit")
      yield* Deferred.succeed(held, undefined)
      yield* plane.until((events, state) => spoken(events).length === before + 6 && quiet(state))
      assert.include(summaryIn(seen.at(-1) ?? []), "Short.")
    })
  )

  it.effect("gives way to stubs that no model wrote when the model fails twice, so that no prompt grows", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      let asks = 0
      const seen: Array<ReadonlyArray<Message>> = []
      const answer = keeper(seen, () => "never")
      const script: Script = (messages, tools) => {
        if (!isCompaction(messages)) return answer(messages, tools)
        asks++
        if (asks % 2 === 1) return Effect.succeed({ finish_reason: "error", error: { kind: "http", message: "500" } })
        return Effect.succeed(
          asks === 2 ? says("I would rather write prose.") : calls(["choir.memory.delta", { mode: 3 }])
        )
      }
      yield* Effect.forkScoped(runAgent({ plane, script, config }))
      yield* talk(plane, 12)
      const compactions = ofType(plane.events, "CompactionCommitted")
      assert.isAtLeast(compactions.length, 2)
      assert.strictEqual(asks, 2 * compactions.length)
      assert.match(summaryIn(seen.at(-1) ?? ("" as never)) ?? "", /\[the user: message 0.*hash [0-9a-f]{12}\]/u)
      const sizes = seen.map((messages) => JSON.stringify(messages.slice(2)).length)
      assert.isAtMost(Math.max(...sizes), 2 * Math.max(...sizes.slice(0, 4)))
    })
  )

  it.effect("is asked about once more where the summary would lose something, and says what", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const seen: Array<ReadonlyArray<Message>> = []
      const script = keeper(seen, (messages) => ({
        mode: "overwrite",
        summary_update: messages.at(-1)?.role === "tool" ? "Short." : "x".repeat(SUMMARY_CHARS_MAX + 1)
      }))
      yield* Effect.forkScoped(runAgent({ plane, script }))
      yield* talk(plane, 1)
      yield* plane.push({ type: "Compact", signal_id: "1" as never })
      yield* plane.until((_, state) => state.signals.includes("1"))
      assert.strictEqual(plane.state().edge.summary.summary, "Short.")
      assert.deepStrictEqual(plane.state().edge.summary.words, [`message 0${LONG}`], "a person's own words stay")
      assert.include(seen.at(-1)?.at(-1)?.content, `12001 of at most ${SUMMARY_CHARS_MAX} characters`)
    })
  )

  it.effect(
    "says in the summary what it left out where the second answer is too long as well, and how to find it",
    () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        const seen: Array<ReadonlyArray<Message>> = []
        const lines = Array.from({ length: SUMMARY_CHARS_MAX / 10 }, (_, at) => `line ${String(at).padStart(4, "0")}.`)
        const facts = Array.from({ length: SUMMARY_FACTS_MAX + 10 }, (_, at) => ({
          key: `fact-${at}`,
          value: at === 100 ? "long ".repeat(101) : "short",
          pinned: at < 2
        }))
        const script = keeper(seen, () => ({ summary_update: lines.join("\n"), add_facts: facts }))
        yield* Effect.forkScoped(runAgent({ plane, script }))
        yield* talk(plane, 1)
        yield* plane.push({ type: "Compact", signal_id: "1" as never })
        yield* plane.until((_, state) => state.signals.includes("1"))
        yield* talk(plane, 1)
        assert.strictEqual(seen.filter(isCompaction).length, 2)
        const { summary } = plane.state().edge
        const [told = "", ...rest] = summary.summary.split("\n")
        assert.match(
          told,
          /^\[There was no room for the first 1,[\d,]+ characters of the summary; these facts: fact-2, fact-3, .*, 2 more; all but the first 500 characters of these facts: fact-100\. They are in older messages of this session, which you cannot search; ask if you need them\.\]$/u
        )
        assert.deepStrictEqual(rest, lines.slice(-rest.length))
        assert.isAbove(rest.length, 900)
        assert.isAtMost(summary.summary.length, SUMMARY_CHARS_MAX)
        assert.include(summaryIn(seen.at(-1) ?? []), told)
      })
  )

  it("names the tool that finds what a summary left out where the lane has it, and adds nothing to one that fits", () => {
    const text = (chars: number) => [{ mode: "overwrite", summary_update: "x".repeat(chars) } as const]
    const [, told] = withLossNote(emptySummary, text(SUMMARY_CHARS_MAX + 1), EVERY_TOOL)
    assert.match(
      told?.summary_update ?? "",
      /^\[There was no room for .* To find them, search this session with choir-memory-query by words that they hold\.\]\nx+$/u
    )
    assert.deepStrictEqual(withLossNote(emptySummary, text(100), EVERY_TOOL), text(100))
  })

  it("cuts nothing of a summary that has room for the word on lost facts, and else no more than that word takes", () => {
    const told = (chars: number) => {
      const text = `Goal: to dig.\n${"Then the next hole was dug.\n".repeat(chars / 28)}`
      const delta = {
        mode: "overwrite",
        summary_update: text,
        add_fact: { key: "site", value: "x".repeat(501) }
      } as const
      const [line = "", ...rest] = (withLossNote(emptySummary, [delta], EVERY_TOOL)[1]?.summary_update ?? "").split(
        "\n"
      )
      assert.include(line, "characters of these facts: site.")
      return { line, rest: rest.join("\n"), text }
    }
    const fits = told(11_700)
    assert.strictEqual(fits.rest, fits.text)
    const over = told(11_970)
    assert.isTrue(over.text.endsWith(over.rest))
    assert.isAtMost(over.line.length + 1 + over.rest.length, SUMMARY_CHARS_MAX)
    assert.isAbove(over.line.length + 1 + over.rest.length, SUMMARY_CHARS_MAX - 60)
  })

  it.effect("is compacted for a job by its own model from its own events, and its task and files stay", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const prompts: Array<ReadonlyArray<Message>> = []
      let steps = 0
      const look = testTool(
        "mem.look",
        () =>
          Effect.succeed({
            status: "success",
            summary: `look ${++steps}${LONG}`,
            writes: [{ path: `file-${steps}`, after: "0".repeat(64) as never }]
          }),
        { effect: "none" }
      )
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
      assert.include(last[2]?.content, "Files written and not committed to git:\n- file-1\n")
      assert.notInclude(JSON.stringify(last.slice(3)), "look 1 and")
      assert.strictEqual(plane.state().edge.boundary, 0)
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "completed")
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

describe("leavingCount", () => {
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
  const sizes = window.map(() => 100)
  const all = { events: 0, tokens: 0 }

  it("never parts a result from its call", () => {
    for (let limit = 0; limit <= 7; limit++)
      assert.strictEqual(leavingCount(window, sizes, all, limit), limit < 3 ? 0 : limit < 5 ? 3 : limit < 6 ? 5 : 6)
  })
  it("lets no more leave than has to, by events and by tokens", () => {
    assert.strictEqual(leavingCount(window, sizes, { events: 4, tokens: 1000 }, 99), 3)
    assert.strictEqual(leavingCount(window, sizes, { events: 6, tokens: 200 }, 99), 5)
    assert.strictEqual(leavingCount(window, sizes, { events: 6, tokens: 1000 }, 99), 3)
  })
  it("parts no turn of edge, unless the open one alone is too much", () => {
    const turns = [
      event(1, "UserMsg", {}),
      calling(2, "a"),
      result(3, "a"),
      event(4, "UserMsg", {}),
      calling(5, "b"),
      result(6, "b")
    ].map((each): Folding => ({ ...each, event: { ...each.event, lane: "edge" } as ChoirEvent }))
    assert.strictEqual(leavingCount(turns, sizes, { events: 4, tokens: 1000 }, 99), 3)
    assert.strictEqual(leavingCount(turns, sizes, { events: 2, tokens: 1000 }, 99), 6)
    assert.strictEqual(leavingCount(turns, sizes, { events: 2, tokens: 1000 }, 4), 4)
  })
})
