import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { CallId, EDGE, JobName, LaneId } from "#schema/Ids.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { placed, situation, userMessage } from "../../support/history.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"

const JOB = JobName.make("a")
const CALL = CallId.make(`${SESSION}-1-2-0`)
const usage = { input_tokens: 1, output_tokens: 1 }
const output = { purpose: "turn", model: "small", finish_reason: "stop", usage, latency_ms: 0 } as const

const ASKED: ReadonlyArray<Command> = [
  userMessage("7"),
  { type: "Output", lane: EDGE, output: { ...output, tool_calls: [{ name: "choir-core-spawn", input: {} }] } },
  {
    type: "Request",
    lane: EDGE,
    call_id: CALL,
    tool: "choir.core.spawn",
    capabilities: [],
    input: {},
    effect: "none",
    locks: [],
    allowed_tools: undefined
  },
  {
    type: "Spawn",
    call_id: CALL,
    model: "small",
    tools: [],
    start: {
      job_name: JOB,
      task_spec: "do",
      context_bundle: { facts: [], excerpts: [], constraints: [] },
      tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
      verbosity: "normal"
    }
  }
]
const ANSWERED: ReadonlyArray<Command> = [
  ...ASKED,
  { type: "Output", lane: EDGE, output: { ...output, text: "It runs.", tool_calls: [] } },
  { type: "Answer", text: "It runs." },
  userMessage("8")
]

const after = (commands: ReadonlyArray<Command>) =>
  commands.reduce<SessionState>((state, command) => {
    const events = Result.getOrThrow(decide(state, command, situation({})))
    return Result.getOrThrow(foldAll(state, placed(state, events)))
  }, initialState)

const answers = (commands: ReadonlyArray<Command>, lane: LaneId) => {
  const [notice] = Result.getOrThrow(decide(after(commands), { type: "Notice", lane, text: "busy" }, situation({})))
  return notice?.event_type === "AgentMessage" ? notice.payload.in_reply_to : notice
}

describe("a notice on the way", () => {
  it("belongs to the message of its turn, and in a job to the one that the job was asked for by", () => {
    assert.strictEqual<unknown>(answers([userMessage("7")], EDGE), "7")
    assert.strictEqual<unknown>(answers(ASKED, LaneId.make("core:a")), "7")
    assert.strictEqual<unknown>(answers(ANSWERED, EDGE), "8")
    assert.strictEqual<unknown>(answers(ANSWERED, LaneId.make("core:a")), "7")
  })

  it("belongs to nobody's message where edge is idle or the job is gone", () => {
    assert.isUndefined(answers([], EDGE))
    assert.isUndefined(answers([userMessage("7")], LaneId.make("core:gone")))
  })
})
