/** Invariants 6 and 7: what leaves a job is a summary of its work, and whoever is told of it hears one agent, which is edge. */
import { assert } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { coreLane, EDGE, InboxId, JobName } from "#schema/Ids.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { readWhole } from "#src/shared/model/codecs.ts"
import { chatCodec } from "#src/shared/model/chatCodec.ts"
import { fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import { sees, viewOf } from "#src/shared/session/search.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"

const THOUGHT = "hmm, perhaps the other way round"
const PROGRESS = "half of it is read"
const SUMMARY = "both halves agree"
const EDGE_WORDS = "I looked into it, and the halves agree"

/** The job thinks aloud at each step, reports its progress, and ends with a summary. */
const coreSays = (messages: ReadonlyArray<Message>) => {
  const results = messages.filter(({ role }) => role === "tool").length
  if (results === 0) return { ...calls(["mem.read", { note: THOUGHT }]), text: THOUGHT }
  return results === 1
    ? { ...calls(["choir.core.report", { kind: "progress", text: PROGRESS }], ["mem.wait", {}]), text: THOUGHT }
    : says(SUMMARY)
}

const edgeSays = (messages: ReadonlyArray<Message>) => {
  const { content, role } = messages.at(-1) ?? {}
  if (content?.startsWith("<choir-note>\nReport:") === true) return says(EDGE_WORDS)
  return role === "user" && content === "compare the halves"
    ? calls(["choir.core.spawn", { job_name: "work", task_spec: "compare" }])
    : says("it is under way")
}

/** A user asks for something that a job does, asks again meanwhile, and is told of the end. */
const conversation = Effect.gen(function* () {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const seenByEdge: Array<ReadonlyArray<Message>> = []
  const script: Script = (messages) =>
    Effect.sync(() => {
      if (isCore(messages)) return coreSays(messages)
      seenByEdge.push(messages)
      return edgeSays(messages)
    })
  const isOver = () => spoken(plane.events).length >= 2
  const tools = [
    testTool("mem.read", () => Effect.succeed({ status: "success", summary: THOUGHT }), { besideJobs: true }),
    testTool("choir.core.report", () => Effect.succeed({ status: "success", summary: "told" }), {
      effect: "none",
      lanes: "core"
    }),
    testTool("mem.wait", () => Effect.as(plane.until(isOver), { status: "success", summary: "waited" }))
  ]
  yield* Effect.forkScoped(runAgent({ plane, script, tools }))
  yield* plane.say("compare the halves")
  yield* plane.until((_, state) => [...state.cores.values()].some(({ report_rev }) => report_rev > 0))
  yield* plane.say("how is it going?")
  yield* plane.until((events, state) => spoken(events).length === 3 && quiet(state))
  return { plane, seenByEdge }
})

/** The events that edge can find when it searches the session's log. */
const findable = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<ChoirEvent> => {
  const view = viewOf(Result.getOrThrow(foldAll(initialState, events)), EDGE)
  return view === undefined ? [] : events.filter((event) => sees(view, event))
}

export const noRawThought = Effect.gen(function* () {
  const { plane, seenByEdge } = yield* conversation
  const thinking = ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.text === THOUGHT)
  assert.deepStrictEqual(
    thinking.map(({ lane }) => lane),
    ["core:work", "core:work"]
  )
  const prompts = JSON.stringify(seenByEdge)
  assert.notInclude(prompts, THOUGHT, "edge was shown what the job thought")
  const { edge } = Result.getOrThrow(foldAll(initialState, plane.events))
  assert.isFalse(
    thinking.some(({ rev }) => edge.window.includes(rev)),
    "edge was shown what the job thought"
  )
  assert.include(prompts, PROGRESS, "edge was not shown the job's report")
  assert.include(prompts, SUMMARY, "edge was not shown the job's summary")
  assert.notInclude(
    JSON.stringify(ofType(plane.events, "AgentMessage")),
    THOUGHT,
    "the user was told what the job thought"
  )
  const found = JSON.stringify(findable(plane.events))
  assert.notInclude(found, THOUGHT, "edge may search what the job thought")
  assert.include(found, SUMMARY)

  // What providers call reasoning is dropped before anything is committed.
  const reply = { choices: [{ message: { content: SUMMARY, reasoning: THOUGHT, reasoning_content: THOUGHT } }] }
  const answer = yield* Effect.fromResult(readWhole(chatCodec, JSON.stringify(reply), (text) => text))
  assert.notInclude(JSON.stringify(answer), THOUGHT)
})

export const oneVoice = Effect.gen(function* () {
  const { plane } = yield* conversation
  assert.deepStrictEqual(
    spoken(plane.events).map(({ lane, payload: { in_reply_to, kind, text } }) => [lane, kind, in_reply_to, text]),
    [
      [EDGE, "reply", "1", "it is under way"],
      [EDGE, "reply", "2", "it is under way"],
      [EDGE, "report", "1", EDGE_WORDS]
    ],
    "the user did not hear of the job from edge, in the conversation in which it was asked for"
  )
  const [first, , report] = spoken(plane.events)
  assert.ok(first?.event_type === "AgentMessage" && report?.event_type === "AgentMessage")
  const stateBefore = (event: ChoirEvent) =>
    Result.getOrThrow(foldAll(initialState, plane.events.slice(0, event.rev - 1)))
  const asJob: ChoirEvent = {
    ...first,
    lane: coreLane(JobName.make("work")),
    payload: { kind: "notice", text: SUMMARY }
  }
  assert.isTrue(Result.isFailure(fold(stateBefore(first), asJob)), "a job spoke to the user itself")
  const elsewhere: ChoirEvent = { ...report, payload: { ...report.payload, in_reply_to: InboxId.make("2") } }
  assert.isTrue(Result.isFailure(fold(stateBefore(report), elsewhere)), "a report answered another message")
})
