import { assert, describe, it } from "@effect/vitest"
import { OFFLINE_MODEL_STEPS_MAX, parseInstruction, parseInstructions } from "#demo/offline-model/Instruction.ts"

const TABLE: ReadonlyArray<readonly [text: string, expected: object | undefined]> = [
  ["read notes/a.txt", { kind: "read", path: "notes/a.txt" }],
  ['Read "my notes.txt"', { kind: "read", path: "my notes.txt" }],
  ["- read a.txt", { kind: "read", path: "a.txt" }],
  ["2. read a.txt", { kind: "read", path: "a.txt" }],
  ["read the news", undefined],
  ["write a.txt: one\\ntwo", { kind: "write", path: "a.txt", content: "one\ntwo\n" }],
  ["write a.txt: C:\\\\new", { kind: "write", path: "a.txt", content: "C:\\new\n" }],
  ["write a.txt:", { kind: "write", path: "a.txt", content: "" }],
  ["write me a poem: roses", undefined],
  ["append a.txt: three", { kind: "append", path: "a.txt", content: "three\n" }],
  ["search needle", { kind: "search", pattern: "needle" }],
  ["search a pin in hay/stack", { kind: "search", pattern: "a pin", path: "hay/stack" }],
  ["run wc -l a.txt | cat", { kind: "run", command: "wc -l a.txt | cat" }],
  ["run", undefined],
  ['call clock.now {"zone": "UTC"}', { kind: "call", tool: "clock.now", input: { zone: "UTC" } }],
  ["call clock-now", { kind: "call", tool: "clock-now", input: {} }],
  [
    `call clock {"at":${"[".repeat(60_000)}${"]".repeat(60_000)}}`,
    { kind: "unusable", problem: "the input of the tool nests deeper than 200 levels" }
  ],
  ["call clock {bad}", { kind: "unusable", problem: "the input of the tool is not valid JSON" }],
  ["call me later", undefined],
  ["call me", undefined],
  ["job count: run ls, then say ok", { kind: "job", job: "count", task: "run ls\nsay ok" }],
  ["job Count: run ls", { kind: "unusable", problem: "a job name is 1 to 40 characters of a-z, 0-9 and -" }],
  ["tell count: run date", { kind: "tell", job: "count", content: "run date" }],
  ["cancel count", { kind: "cancel", job: "count" }],
  ["cancel my order please", undefined],
  ["jobs", { kind: "jobs" }],
  ["jobs are hard to find", undefined],
  ["say hello, world", { kind: "say", text: "hello, world" }],
  ["report half way", { kind: "report", event: "progress", text: "half way" }],
  ["report need_info: which file", { kind: "report", event: "need_info", text: "which file" }],
  ["remember user.city: Lives in Lyon", { kind: "remember", key: "user.city", text: "Lives in Lyon" }],
  ["remember the milk", undefined],
  ["remember this: buy milk", { kind: "remember", key: "this", text: "buy milk" }],
  ["recall facts: where I live", { kind: "recall", store: "knowledge", query: "where I live" }],
  ["recall sessions: the dentist", { kind: "recall", store: "session", query: "the dentist" }],
  ["recall my name", undefined],
  ["constructor x", undefined],
  ["Could you read a.txt?", undefined],
  ["", undefined]
]

describe("Instruction", () => {
  for (const [text, expected] of TABLE) {
    it(`${expected === undefined ? "takes for a sentence" : "understands"}: ${text}`, () => {
      const { source: _, ...found } = parseInstruction(text) ?? { source: "" }
      assert.deepStrictEqual(found, expected ?? {})
    })
  }

  it("separates instructions by line and by a ; that an instruction follows", () => {
    const { ignored, steps } = parseInstructions("Hello\nread a; run date; uptime; read b\r\nsay x; y")
    assert.deepStrictEqual(ignored, ["Hello"])
    assert.deepStrictEqual(
      steps.map((step) => step.source),
      ["read a", "run date; uptime", "read b", "say x; y"]
    )
  })

  it("takes a bounded number of instructions", () => {
    const { ignored, steps } = parseInstructions("jobs\n".repeat(OFFLINE_MODEL_STEPS_MAX + 3))
    assert.strictEqual(steps.length, OFFLINE_MODEL_STEPS_MAX)
    assert.strictEqual(ignored.length, 3)
  })
})
