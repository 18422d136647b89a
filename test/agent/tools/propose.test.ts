/** What an agent proposes, and how it hears of the decision, with everything real but choird and the model. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ApprovalId, SignalId } from "#schema/Ids.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, type Script, says } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, ticking } from "../../support/testing/TestAgent.ts"

const TOOL = {
  manifest: {
    llm: { name: "notes.count", description: "Counts the notes", input_schema: { type: "object" } },
    runtime: { exec_path: "notes.count", effect: "none" }
  },
  files: [{ path: "tools/notes.count", content: "#!/bin/sh\nwc -l notes\n", executable: true }],
  reason: "the user asked for it"
}

const start = Effect.fnUntraced(function* (script: Script) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  yield* plane.say("make yourself a tool")
  const live = (epoch: number) => Effect.forkScoped(runAgent({ plane, script, epoch }))
  return { plane, live, agent: yield* live(1) }
})

const ended = (plane: MemoryControlPlane) => plane.until((events, state) => events.length > 0 && quiet(state))
const results = (plane: MemoryControlPlane) => ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload)

describe("choir.propose", () => {
  it.effect("hands a proposal to choird as it stands in the log, changes nothing and waits for nobody", () =>
    Effect.gen(function* () {
      const { plane } = yield* start(inOrder(calls(["choir.propose.tool", TOOL]), says("I proposed it")))
      yield* ended(plane)
      assert.deepStrictEqual(plane.approvals[0]?.request.payload, TOOL)
      assert.strictEqual(plane.approvals[0]?.request.request_type, "tool")
      const [result] = results(plane)
      assert.strictEqual(result?.status, "success")
      // The digest of a payload is on the person's card, and nobody can word one who does not know it.
      assert.deepStrictEqual(result?.output, { approval_id: "1", status: "pending" })
      assert.notInclude(JSON.stringify(result), sha256(canonicalJson(TOOL)).slice(0, 8))
      const [request] = ofType(plane.events, "ToolCallRequested")
      assert.deepStrictEqual([request?.payload.effect, request?.payload.locks], ["none", []])
    })
  )

  it.effect("is called by one name and a kind, and the log has the tool of the kind", () =>
    Effect.gen(function* () {
      const { plane } = yield* start(
        inOrder(calls(["choir.propose", { kind: "tool", proposal: TOOL }]), says("I proposed it"))
      )
      yield* ended(plane)
      const [request] = ofType(plane.events, "ToolCallRequested")
      assert.deepStrictEqual([request?.payload.tool, request?.payload.input], ["choir.propose.tool", TOOL] as never)
      assert.deepStrictEqual(plane.approvals[0]?.request.payload, TOOL)
      assert.strictEqual(results(plane)[0]?.status, "success")
    })
  )

  it.effect.each([
    { input: { kind: "tools", proposal: TOOL }, problem: /kind/u },
    {
      input: { kind: "tool", proposal: TOOL, reason: "so" },
      problem: /there is no reason; the keys are kind, proposal/u
    },
    { input: { manifest: {} }, problem: /kind/u }
  ])("says what is wrong with $input", ({ input, problem }) =>
    Effect.gen(function* () {
      const { plane } = yield* start(inOrder(calls(["choir.propose", input]), says("sorry")))
      yield* ended(plane)
      assert.lengthOf(plane.approvals, 0)
      assert.strictEqual(results(plane)[0]?.status, "rejected")
      assert.match(results(plane)[0]?.summary ?? "", problem)
    })
  )

  it.effect("tells the model what is wrong with a proposal before anybody is asked", () =>
    Effect.gen(function* () {
      const broken = { ...TOOL, manifest: { llm: TOOL.manifest.llm } }
      const { plane } = yield* start(inOrder(calls(["choir.propose.tool", broken]), says("sorry")))
      yield* ended(plane)
      assert.lengthOf(plane.approvals, 0)
      assert.match(results(plane)[0]?.summary ?? "", /runtime/u)
    })
  )

  it.effect.each(["tool", "skill", "config_change", "repo_change"])(
    "tells the form of a %s to a call without a proposal",
    (kind) =>
      Effect.gen(function* () {
        const { plane } = yield* start(inOrder(calls(["choir.propose", { kind }]), says("now I know")))
        yield* ended(plane)
        assert.lengthOf(plane.approvals, 0)
        const [result] = results(plane)
        assert.strictEqual(result?.status, "rejected")
        assert.match(result?.summary ?? "", /The form: \w+ is .*for the person who decides/u)
      })
  )

  it.effect("names contracts and scripts in the form of a skill", () =>
    Effect.gen(function* () {
      const { plane } = yield* start(inOrder(calls(["choir.propose.skill", {}]), says("now I know")))
      yield* ended(plane)
      const form = results(plane)[0]?.summary ?? ""
      for (const word of ["contract", "deterministic", "workflow", "leaves initial_state, max_steps and states out"])
        assert.include(form, word)
    })
  )

  it.effect("is one proposal for a call, over a choird that is away and a crash of the agent (D17)", () =>
    Effect.gen(function* () {
      const { agent, live, plane } = yield* start((messages) =>
        Effect.succeed(
          messages.some(({ role }) => role === "tool") ? says("I proposed it") : calls(["choir.propose.tool", TOOL])
        )
      )
      yield* plane.away(Effect.sleep("5 seconds"))
      yield* Effect.repeat(Effect.yieldNow, { until: () => plane.approvals.length > 0 })
      plane.cutOff()
      yield* Fiber.interrupt(agent)
      yield* live(2)
      yield* ended(plane)
      assert.lengthOf(plane.approvals, 1)
      assert.strictEqual(results(plane)[0]?.status, "success")
    })
  )

  it.effect("hears of the decision as words of the control plane, once, and shows them to the model", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const script: Script = (messages, tools) => {
        seen.push(JSON.stringify(messages))
        return inOrderScript(messages, tools)
      }
      const inOrderScript = inOrder(calls(["choir.propose.tool", TOOL]), says("I proposed it"), says("it is there now"))
      const { plane } = yield* start(script)
      yield* ended(plane)
      const told = {
        type: "ApprovalResolved",
        approval_id: ApprovalId.make("1"),
        status: "approved",
        signal_id: SignalId.make("40"),
        note: "Proposal 1 was approved."
      } as const
      yield* plane.push(told)
      yield* plane.push(told)
      yield* plane.until((events) => ofType(events, "InjectedInstruction").length > 0)
      yield* plane.say("is it there?")
      yield* plane.until((events, state) => ofType(events, "UserMsg").length === 2 && quiet(state))
      assert.deepStrictEqual(
        ofType(plane.events, "InjectedInstruction").map(({ payload }) => payload),
        [{ signal_id: told.signal_id, target: "edge", source: "control_plane", content: told.note }] as never
      )
      assert.include(seen.at(-1), "<choir-note>\\nProposal 1 was approved.")
    })
  )
})
