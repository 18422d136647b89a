/** Files that lanes send: the result of the call and the message with the files are one commit. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { exec } from "#src/agent/tools/exec.ts"
import { fsSend } from "#src/agent/tools/fsSend.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, type Said, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent } from "../../support/testing/TestAgent.ts"
import { temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const agent = Effect.fnUntraced(function* (say: (...asked: Parameters<Script>) => Said) {
  const script: Script = (...asked) => Effect.sync(() => say(...asked))
  const { root } = yield* temporaryWorkspace
  writeFileSync(join(root, "plan.md"), "# Plan")
  const tools = yield* Effect.provideContext(Effect.all([exec, fsSend]), yield* toolServices(root))
  const plane = yield* makeMemoryControlPlane
  yield* Effect.forkScoped(runAgent({ plane, script, tools }))
  return plane
})

describe("files of a lane", () => {
  it.live("go to the person whose message edge works on, beside the result that its model reads", () =>
    Effect.gen(function* () {
      let seen = ""
      let step = 0
      const plane = yield* agent((messages) => {
        seen = JSON.stringify(messages)
        step += 1
        if (step === 1) return calls(["choir.fs.send", { paths: ["plan.md"], caption: "the plan" }])
        if (step === 2)
          return calls([
            "choir.exec",
            { command: "mkdir -p .choirtmp/send; echo x > .choirtmp/send/x.txt; echo .choirtmp/send/x.txt" }
          ])
        return says("Both are on their way.")
      })
      yield* plane.say("send me the plan")
      yield* plane.until((events, state) => ofType(events, "AgentMessage").length === 3 && quiet(state))
      const [asked] = ofType(plane.events, "UserMsg")
      const sent = ofType(plane.events, "AgentMessage").filter(({ payload }) => payload.files !== undefined)
      assert.deepStrictEqual(
        sent.map(({ payload }) => [
          payload.kind,
          payload.text,
          payload.files?.map(({ path }) => path),
          payload.in_reply_to
        ]),
        [
          ["notice", "the plan", ["plan.md"], asked?.payload.inbox_id],
          ["notice", undefined, [".choirtmp/send/x.txt"], asked?.payload.inbox_id]
        ]
      )
      const results = ofType(plane.events, "ToolResultCommitted")
      assert.deepStrictEqual(
        sent.map(({ rev }) => rev - 1),
        results.map(({ rev }) => rev)
      )
      assert.include(seen, "sent to the user: plan.md")
      assert.include(seen, "[sent to the user: x.txt]")
    })
  )

  it.live("of a job go to the person who asked for it", () =>
    Effect.gen(function* () {
      const plane = yield* agent((messages) => {
        const said = JSON.stringify(messages)
        if (isCore(messages))
          return said.includes("sent to the user") ? says("done") : calls(["choir.fs.send", { paths: ["plan.md"] }])
        if (messages.some(({ role }) => role === "tool")) return says("It works on it.")
        return calls(["choir.core.spawn", { job_name: "send", task_spec: "send the plan" }])
      })
      yield* plane.say("let a job send me the plan")
      yield* plane.until((events) => ofType(events, "AgentMessage").some(({ payload }) => payload.files !== undefined))
      const [asked] = ofType(plane.events, "UserMsg")
      const sent = ofType(plane.events, "AgentMessage").find(({ payload }) => payload.files !== undefined)
      assert.deepStrictEqual([sent?.lane, sent?.payload.in_reply_to], ["edge", asked?.payload.inbox_id])
    })
  )
})
