import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { ChoirEvent, SentEvent } from "#schema/Event.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

const SHA = "ab".repeat(32)
const usage = { input_tokens: 10, output_tokens: 2, cost_usd: 0.001 }

/** Every payload with each of its optional fields, as it stands on the wire. */
const PAYLOADS: Readonly<Record<string, object>> = {
  UserMsg: {
    inbox_id: "999999999999999999",
    dm: "me",
    text: "é",
    attachments: [{ path: ".choirtmp/a", name: "a", mime: "image/png", bytes: 0 }]
  },
  ModelOutput: {
    call_id: "0123456789abcdef-1-2",
    purpose: "report",
    model: "small",
    text: "t",
    tool_calls: [{ call_id: "0123456789abcdef-1-2-0", name: "choir-exec", input: "{broken" }],
    finish_reason: "stop",
    usage,
    latency_ms: 0,
    error: { kind: "rate_limited", message: "m", status: 429, retry_after_ms: 1000 }
  },
  ToolCallRequested: {
    call_id: "c",
    tool: "choir.exec",
    input: { command: ["ls"] },
    effect: "workspace",
    locks: [{ resource: "workspace", mode: "X" }],
    skill: "s"
  },
  ToolCallCommitted: { call_id: "c", locks: [{ resource: "file:a", mode: "S" }], dirty: true },
  ToolResultCommitted: {
    call_id: "c",
    status: "unknown_after_crash",
    summary: "s",
    output: { a: [null, 1.5, true] },
    artifact_ref: "r",
    allowed: { tools: ["a"], transitions: ["b"] },
    untrusted: true,
    dirty: true,
    duration_ms: 1,
    reads: [{ path: "a", sha256: SHA }],
    writes: [{ path: "a", before: SHA, after: SHA }]
  },
  MemoryWriteCommitted: { call_id: "c", store: "knowledge", action: "update", key: "k", document_id: "d" },
  CoreStarted: {
    job_id: "c",
    job_name: "work",
    start: {
      job_id: "c",
      job_name: "work",
      task_spec: "do",
      context_bundle: { facts: ["f"], excerpts: ["e"], constraints: ["c"] },
      tool_constraints: { allowed_tools: ["choir.fs.read"], time_budget_ms: 5 },
      output_schema: { type: "object" },
      verbosity: "quiet"
    },
    model: "small",
    budgets: { max_steps: 1, max_tool_calls: 2, wall_time_ms: 3, max_injections: 4 }
  },
  CoreStopped: { job_id: "c", job_name: "work", outcome: "stuck", summary: "s", result: [1], usage },
  InjectedInstruction: { signal_id: "1", target: "core:work", source: "user", content: "c", refused: "r" },
  Cancelled: { signal_id: "1", target: "edge", by: "budget", reason: "r" },
  SkillTransitionCommitted: { skill: "s", from: "a", to: "b", on: "c", step: 1, reason: "r" },
  AgentMessage: { kind: "notice", text: "t", file: { path: "p", as: "photo" }, in_reply_to: "1" },
  CompactionCommitted: {
    signal_id: "1",
    delta: {
      mode: "append",
      summary_update: "s",
      add_references: ["a"],
      remove_references: ["b"],
      add_fact: { key: "k", value: "v", source_event: SHA },
      remove_fact: { key: "k", value: "v" }
    },
    boundary_rev: 0
  }
}

const REQUIRED: Readonly<Record<string, ReadonlyArray<string>>> = {
  UserMsg: ["inbox_id", "dm", "text", "attachments"],
  ModelOutput: ["call_id", "purpose", "model", "tool_calls", "finish_reason", "usage", "latency_ms"],
  ToolCallRequested: ["call_id", "tool", "input", "effect", "locks"],
  ToolCallCommitted: ["call_id", "locks"],
  ToolResultCommitted: ["call_id", "status", "summary", "duration_ms"],
  MemoryWriteCommitted: ["call_id", "store", "action"],
  CoreStarted: ["job_id", "job_name", "start", "model", "budgets"],
  CoreStopped: ["job_id", "job_name", "outcome", "summary", "usage"],
  InjectedInstruction: ["target", "source", "content"],
  Cancelled: ["target", "by", "reason"],
  SkillTransitionCommitted: ["skill", "from", "to", "on", "step"],
  AgentMessage: ["kind"],
  CompactionCommitted: ["delta", "boundary_rev"]
}

const SALT = "0123456789abcdef".repeat(2)
const event = (event_type: string, payload: object, more: object = {}) => ({
  v: 2,
  rev: 1,
  event_type,
  lane: "edge",
  payload,
  created_at: "2026-01-02T03:04:05.678Z",
  salt: SALT,
  ...more
})

const decode = Schema.decodeUnknownResult(ChoirEvent, { onExcessProperty: "error" })
const encode = Schema.encodeSync(ChoirEvent)
const refuses = (value: unknown, what: string) => assert.isTrue(Result.isFailure(decode(value)), what)

describe("ChoirEvent", () => {
  it("knows exactly the thirteen of the wire (D2)", () => {
    const known = Object.keys(PAYLOADS).filter((type) => Result.isSuccess(decode(event(type, PAYLOADS[type] ?? {}))))
    assert.strictEqual(known.length, 13)
    assert.strictEqual(ChoirEvent.members.length, 13)
  })

  for (const [type, payload] of Object.entries(PAYLOADS)) {
    it(`reads and writes ${type} without changing a byte, and refuses what is not quite one`, () => {
      const required = REQUIRED[type] ?? []
      const least = Object.fromEntries(Object.entries(payload).filter(([key]) => required.includes(key)))
      for (const wire of [event(type, payload), event(type, least)]) {
        const read = decode(wire)
        if (Result.isFailure(read)) assert.fail(read.failure.message)
        assert.strictEqual(canonicalJson(read.success), canonicalJson(wire))
        assert.strictEqual(canonicalJson(encode(read.success)), canonicalJson(wire))
      }
      for (const key of required) {
        const { [key]: _, ...rest } = payload as Record<string, unknown>
        refuses(event(type, rest), `without ${key}`)
      }
      refuses(event(type, { ...payload, surplus: 1 }), "a surplus key of the payload")
      refuses(event(type, payload, { surplus: 1 }), "a surplus key")
      for (const wrong of [
        { v: 1 },
        { v: 3 },
        { salt: "00" },
        { rev: -1 },
        { rev: 1.5 },
        { lane: "core:" },
        { created_at: "2026-01-02" }
      ])
        refuses(event(type, payload, wrong), JSON.stringify(wrong))
    })
  }

  it("has a salt in version 2 and none in version 1, and may say what digest the chain has of a reduced payload (D52)", () => {
    const { salt: _, ...unsalted } = event("AgentMessage", { kind: "notice" })
    const accepts = (value: unknown, what: string) => assert.isTrue(Result.isSuccess(decode(value)), what)
    accepts({ ...unsalted, v: 1 }, "version 1")
    accepts({ ...unsalted, salt: SALT, payload_digest: SHA }, "a reduced payload")
    refuses(unsalted, "version 2 without a salt")
    refuses({ ...unsalted, payload_digest: SHA }, "a digest without a salt")
    refuses({ ...unsalted, v: 1, payload_digest: SHA }, "a reduced payload of version 1")
  })

  it("takes an event of a later Choir from an agent in the known envelope alone (D53)", () => {
    const send = Schema.decodeUnknownResult(SentEvent, { onExcessProperty: "error" })
    const later = { ...event("PlanCommitted", { plan: [1, "two"] }), salt: SALT }
    for (const legal of [later, { ...later, v: 3 }, { ...event("UserMsg", { other: 1 }), v: 3 }])
      assert.deepStrictEqual(Result.getOrThrow(send(legal)) as object, legal)
    const { salt: _, ...unsalted } = later
    const wrong = [
      { ...later, v: 1 },
      { ...later, v: 32_768 },
      { ...later, v: 2.5 },
      { ...later, event_type: "planCommitted" },
      { ...later, event_type: `P${"x".repeat(64)}` },
      { ...later, lane: "edge\n" },
      { ...later, created_at: "yesterday" },
      { ...later, salt: "ab" },
      { ...later, payload_digest: SHA },
      { ...later, more: 1 },
      { ...later, v: 2, event_type: "UserMsg" },
      unsalted
    ]
    for (const value of wrong) assert.isTrue(Result.isFailure(send(value)), JSON.stringify(value))
  })

  it("refuses values that are near a legal one", () => {
    const near: ReadonlyArray<readonly [string, object]> = [
      ["UserMsg", { inbox_id: "01" }],
      ["UserMsg", { inbox_id: 1 }],
      ["UserMsg", { dm: "Me" }],
      ["ModelOutput", { purpose: "chat" }],
      ["ModelOutput", { usage: { input_tokens: 1.5, output_tokens: 0 } }],
      ["ModelOutput", { usage: { ...usage, cost_usd: Number.POSITIVE_INFINITY } }],
      ["ModelOutput", { latency_ms: -1 }],
      ["ModelOutput", { text: null }],
      ["ToolCallRequested", { effect: "write" }],
      ["ToolCallRequested", { locks: [{ resource: "workspace", mode: "W" }] }],
      ["ToolResultCommitted", { status: "done" }],
      ["ToolResultCommitted", { reads: [{ path: "a", sha256: SHA.toUpperCase() }] }],
      ["CoreStarted", { job_name: "Work" }],
      ["CoreStopped", { outcome: "ok" }],
      ["InjectedInstruction", { source: "core" }],
      ["Cancelled", { by: "model" }],
      ["AgentMessage", { kind: "answer" }],
      ["CompactionCommitted", { delta: { mode: "merge" } }]
    ]
    for (const [type, wrong] of near) refuses(event(type, { ...PAYLOADS[type], ...wrong }), JSON.stringify(wrong))
    refuses(event("LlmCallCommitted", {}), "an unknown type")
  })
})
