/** Answers of models within their limit of bytes that overflow the stack of their reader, or take hours of it. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { makeVisibleText } from "#src/agent/model/visibleText.ts"
import { CODECS, readStream, readWhole } from "#src/shared/model/codecs.ts"

const same = (text: string): string => text
const DEPTH = 100_000
const DEEP = "[".repeat(DEPTH) + "]".repeat(DEPTH)

/** Far more than a busy machine takes for what is read in one go, and far less than what grows with the square. */
const MS_MAX = 8000

const many = (count: number, write: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => write(index)).join(",")

const DEEP_WHOLES = [
  ["chat", DEEP],
  [
    "chat",
    `{"choices":[{"message":{"content":"a","extra_content":${DEEP},"tool_calls":[{"extra_content":${DEEP},"function":{"name":"a","arguments":"{}"}}]}}]}`
  ],
  [
    "chat",
    `{"choices":[{"message":{"reasoning_details":[{"a":${DEEP}}],"tool_calls":[{"function":{"name":"a","arguments":"{}"}}]}}]}`
  ],
  ["responses", DEEP],
  ["responses", `{"status":"completed","output":[{"type":"reasoning","encrypted_content":"a","x":${DEEP}}]}`],
  ["messages", DEEP],
  ["messages", `{"content":[{"type":"tool_use","name":"a","input":{"a":${DEEP}}}]}`]
] as const

const DEEP_EVENTS = [
  ["chat", DEEP],
  ["chat", `{"usage":${DEEP},"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`],
  ["chat", `{"choices":[{"delta":{"reasoning_details":[{"a":${DEEP}}]}}]}`],
  ["responses", `{"type":"response.output_item.done","item":{"a":${DEEP}}}`],
  ["responses", `{"type":"response.completed","response":{"output":[{"type":"message","content":${DEEP}}]}}`],
  ["messages", DEEP],
  ["messages", `{"type":"content_block_start","index":0,"content_block":{"type":"x","a":${DEEP}}}`],
  ["messages", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_details":${DEEP}}}`]
] as const

const within = (read: () => void) => {
  const began = performance.now()
  read()
  assert.isBelow(performance.now() - began, MS_MAX)
}

describe("an answer that nests deeper than a stack", () => {
  it.each(DEEP_WHOLES)("is refused as a whole one of %s", (api, text) => {
    const read = readWhole(CODECS[api], text, same)
    assert.isTrue(Result.isFailure(read) && read.failure.kind === "malformed")
  })

  it.each(DEEP_EVENTS)("is refused as an event of %s", (api, data) => {
    const fed = readStream(CODECS[api], same).feed(`data: ${data}\n\n`)
    assert.isTrue(Result.isFailure(fed) && fed.failure.kind === "malformed")
  })
})

describe("an answer of countless parts", () => {
  it("is too large when one event has 200,000 calls", () => {
    const calls = many(200_000, (index) => `{"id":"${index}","function":{"name":"a"}}`)
    const fed = readStream(CODECS.chat, same).feed(`data: {"choices":[{"delta":{"tool_calls":[${calls}]}}]}\n\n`)
    assert.isTrue(Result.isFailure(fed) && fed.failure.kind === "too_large")
  })

  it("costs what its bytes cost when each part of its reasoning has a place of its own", () =>
    within(() => {
      const reading = readStream(CODECS.chat, same)
      for (let chunk = 0; chunk < 20; chunk++) {
        const details = many(4000, (index) => `{"index":${chunk * 4000 + index}}`)
        reading.feed(`data: {"choices":[{"delta":{"reasoning_details":[${details}]}}]}\n\n`)
      }
    }))

  it("costs what its bytes cost when long arguments come under a name that is repeated", () =>
    within(() => {
      const piece = (text: string) =>
        `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, function: { name: "a", arguments: text } }] } }] })}\n\n`
      const reading = readStream(CODECS.chat, same)
      reading.feed(piece(`{"a":[${"1,".repeat(1_000_000)}`))
      reading.feed(piece("}").repeat(500))
    }))

  it("costs what its bytes cost when a response has as many items as fit", () =>
    within(() => {
      const items = many(240_000, () => '{"type":"message","content":[]}')
      readWhole(CODECS.responses, `{"status":"completed","output":[${items}]}`, same)
    }))

  it("is too large when a message counts under ever new keys", () => {
    const reading = readStream(CODECS.messages, same)
    const counts = (chunk: number) => many(2000, (index) => `"k${chunk * 2000 + index}":1`)
    let fed = reading.feed("")
    for (let chunk = 0; chunk < 100 && Result.isSuccess(fed); chunk++)
      fed = reading.feed(`data: {"type":"message_delta","delta":{},"usage":{${counts(chunk)}}}\n\n`)
    assert.isTrue(Result.isFailure(fed) && fed.failure.kind === "too_large")
  })

  it("costs what its bytes cost when it begins with blanks, while somebody watches", () =>
    within(() => {
      const visible = makeVisibleText({ begun: () => 0, scrub: same })
      for (let count = 0; count < 300_000; count++) visible(" ")
      assert.strictEqual(visible("Four."), "Four.")
    }))
})
