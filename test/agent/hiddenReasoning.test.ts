/** A model's reasoning between its calls is for that model alone: no other reader of the log shows it (invariant 6). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Continuation } from "#schema/Continuation.ts"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { foldingLine } from "#src/agent/memory/compaction.ts"
import { rendering, withNames } from "#src/agent/model/prompt/promptMessages.ts"
import { reducedPayload } from "#src/choird/sessions/reducedPayload.ts"
import { factsOf, newWatch } from "#src/choird/telemetry/facts.ts"
import { eventLine } from "#src/choirctl/render/sessions.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { logSearch } from "#src/shared/session/search.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool } from "../support/testing/TestAgent.ts"
import { EVERY_TOOL } from "../support/offered.ts"

const SECRET = "raw thought 4711"
const continuation: Continuation = {
  api: "chat",
  model: "elsewhere.example small",
  data: JSON.stringify({ reasoning: SECRET })
}

const thinks = (said: ReturnType<typeof calls>) => ({ ...said, continuation })

/** Edge starts a job, and both think at each of their calls. */
const conversation = Effect.gen(function* () {
  const plane = yield* makeMemoryControlPlane
  const prompts: Array<{ readonly lane: "core" | "edge"; readonly messages: ReadonlyArray<Message> }> = []
  const script: Script = (messages) =>
    Effect.sync(() => {
      const lane = isCore(messages) ? "core" : "edge"
      prompts.push({ lane, messages })
      const results = messages.filter(({ role }) => role === "tool").length
      if (lane === "core") return results === 0 ? thinks(calls(["mem.read", {}])) : says("read")
      const last = messages.at(-1)
      return last?.role === "user" && last.content === "go"
        ? thinks(calls(["choir.core.spawn", { job_name: "work", task_spec: "read" }]))
        : says("fine")
    })
  const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "seen" }), { besideJobs: true })
  yield* Effect.forkScoped(runAgent({ plane, script, tools: [read] }))
  yield* plane.say("go")
  yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
  return { plane, prompts }
})

const outputOf = (events: ReadonlyArray<ChoirEvent>): EventOf<"ModelOutput"> => {
  const found = ofType(events, "ModelOutput").find(({ payload }) => payload.continuation !== undefined)
  assert.isDefined(found)
  return found
}

describe("the reasoning behind a call", () => {
  it.live("is committed, and stands in the prompts of its own lane only as its continuation", () =>
    Effect.gen(function* () {
      const { plane, prompts } = yield* conversation
      assert.strictEqual(
        ofType(plane.events, "ModelOutput").filter(({ payload }) => payload.continuation !== undefined).length,
        2
      )
      assert.isTrue(prompts.some(({ messages }) => JSON.stringify(messages).includes("4711")))
      for (const { messages } of prompts) {
        const told = messages.map((message) => ({ ...message, continuation: undefined }))
        assert.notInclude(JSON.stringify(told), "4711")
        const own = messages.filter((message) => "continuation" in message)
        assert.isAtMost(own.length, 1, "no lane sees the reasoning of another")
      }
      for (const event of plane.events)
        if (event.event_type !== "ModelOutput") assert.notInclude(JSON.stringify(event), "4711", event.event_type)
    }).pipe(Effect.scoped)
  )

  it.live(
    "is in no search, no summary, no line of a person's, no fact of telemetry, and not in what is forgotten",
    () =>
      Effect.gen(function* () {
        const { plane } = yield* conversation
        const output = outputOf(plane.events)
        const hash = "ab".repeat(32)
        assert.isUndefined(logSearch({ mode: "keyword", query: "4711" }).hit(output, () => hash))
        const shown = [
          logSearch({ mode: "hash", query: "abababab" }).hit(output, () => hash)?.excerpt,
          foldingLine({
            event: output,
            hash,
            messages: rendering("edge", withNames(new Map(), [output]), { isMasked: () => false, offered: EVERY_TOOL })(
              output
            )
          }),
          eventLine({ ...output, hash }, false),
          JSON.stringify(factsOf(newWatch(0), output)),
          JSON.stringify(reducedPayload(output))
        ]
        for (const text of shown) {
          assert.isString(text)
          assert.notInclude(text, "4711")
        }
      }).pipe(Effect.scoped)
  )
})
