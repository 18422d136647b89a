/** Invariant 3: an instruction for a running job is one more event; nothing before it changes and no budget begins anew. */
import { assert } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import type { CoreLane, SessionState } from "#src/shared/session/State.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"

const STEPS_MAX = 6
const INJECTIONS_MAX = 2

/** The job steps without end. Edge passes each further message on to it. */
const script =
  (prompts: Array<ReadonlyArray<Message>>): Script =>
  (messages) =>
    Effect.sync(() => {
      if (isCore(messages)) {
        prompts.push(messages)
        return calls(["mem.read", { step: prompts.length }])
      }
      const { content, role } = messages.at(-1) ?? {}
      if (role !== "user" || content?.startsWith("[control") === true) return says("ok")
      return content === "go"
        ? calls(["choir.core.spawn", { job_name: "work", task_spec: "read" }])
        : calls(["choir.core.inject", { job_name: "work", content: content ?? "" }])
    })

const stateAt = (events: ReadonlyArray<ChoirEvent>, rev: number): SessionState =>
  Result.getOrThrow(foldAll(initialState, events.slice(0, rev)))

/** What an instruction has to leave as it is. */
const spent = ({ spent }: SessionState, core: CoreLane | undefined) => ({
  session: spent,
  steps: core?.step,
  calls: core?.tool_calls,
  tokens: core?.spent,
  budgets: core?.budgets,
  started_at: core?.started_at
})

export const injectionOnlyAppends = Effect.gen(function* () {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const prompts: Array<ReadonlyArray<Message>> = []
  const read = testTool(
    "mem.read",
    () => Effect.delay(Effect.succeed({ status: "success", summary: `read ${prompts.length}` } as const), "5 seconds"),
    { effect: "none" }
  )
  const config = agentConfig({ per_job_max_steps: STEPS_MAX, max_injections_per_job: INJECTIONS_MAX })
  yield* Effect.forkScoped(runAgent({ plane, script: script(prompts), tools: [read], config }))
  yield* plane.say("go")
  yield* plane.until(() => prompts.length === 2)
  const history = structuredClone(plane.events)
  for (const [said, text] of ["one", "two", "three"].entries()) {
    yield* plane.say(text)
    yield* plane.until((events) => ofType(events, "AgentMessage").length === said + 2)
  }
  yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))

  const { events } = plane
  assert.deepStrictEqual(
    events.slice(0, history.length),
    history,
    "an instruction changed what was committed before it"
  )
  const injected = ofType(events, "InjectedInstruction")
  assert.deepStrictEqual(
    injected.map(({ payload }) => payload.content),
    ["one", "two"],
    `a job took more than ${INJECTIONS_MAX} instructions`
  )
  for (const { rev } of injected) {
    const [before, after] = [stateAt(events, rev - 1), stateAt(events, rev)]
    const [was, is] = [before, after].map(({ cores }) => [...cores.values()][0])
    assert.isAbove(was?.step ?? 0, 0)
    assert.deepStrictEqual(spent(after, is), spent(before, was), "an instruction gave the job a fresh budget")
  }
  assert.strictEqual(prompts.length, STEPS_MAX, "instructions changed how many steps the job has")
  assert.strictEqual(ofType(events, "CoreStopped")[0]?.payload.outcome, "budget")
  for (const [index, prompt] of prompts.slice(1).entries())
    assert.deepStrictEqual(
      prompt.slice(0, prompts[index]?.length),
      prompts[index],
      "a later prompt does not begin with what the job saw before"
    )
})
