/** Reports on jobs, heard while the model still writes them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { InboxId, JobName, SignalId } from "#schema/Ids.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const report = testTool("choir.core.report", () => Effect.succeed({ status: "success", summary: "told" }), {
  effect: "none",
  lanes: "core"
})

/** Edge starts a job and writes its reports as a person hears them; the job asks, and ends with the answer. */
const script: Script = (messages, _, heard) => {
  const last = messages.at(-1)
  if (isCore(messages))
    return Effect.succeed(
      messages.some(({ role }) => role === "tool")
        ? says("dug")
        : calls(["choir.core.report", { kind: "need_info", text: "How deep?" }])
    )
  if (last?.content === "go") return Effect.succeed(calls(["choir.core.spawn", { job_name: "dig", task_spec: "dig" }]))
  const text =
    last?.content?.startsWith("<choir-note>\nReport:") === true ? (last.content.split("\n")[2] ?? "") : "on it"
  const hear = heard ?? (() => Effect.void)
  return hear({ type: "begin", model: "m" }).pipe(
    Effect.andThen(hear({ type: "text", text })),
    // The model writes on, and edge has committed nothing of the report yet.
    Effect.andThen(Effect.sleep("1 second")),
    Effect.as(says(text))
  )
}

describe("a report on a job", () => {
  it.effect("is heard while it is written, as a report to the message that led to the job", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [report] }))
      yield* plane.say("go")
      yield* plane.until((events) => spoken(events).length === 2)
      const job_name = JobName.make("dig")
      yield* plane.push({ type: "Inject", signal_id: SignalId.make("7"), content: "deep", job_name })
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      const asked = ofType(plane.events, "ToolCallRequested").find(({ lane }) => lane === "core:dig")
      const [stopped] = ofType(plane.events, "CoreStopped")
      const about = { inbox_id: InboxId.make("1") }
      assert.deepStrictEqual(
        plane.drafts.map(({ text, ...rest }) => (text === "" ? undefined : rest)),
        [about, { ...about, report_rev: asked?.rev ?? 0 }, { ...about, report_rev: stopped?.rev ?? 0 }]
      )
      assert.match(plane.drafts[1]?.text ?? "", /How deep/u)
    })
  )
})
