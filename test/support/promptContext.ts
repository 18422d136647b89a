import { EDGE, Rev } from "#schema/Ids.ts"
import type { PromptContext } from "#schema/PromptContext.ts"

/** A short prompt of edge, whose user sends an escape sequence. */
export const promptContext: PromptContext = {
  lane: EDGE,
  rev: Rev.make(12),
  model: "large",
  context_window: 1000,
  tokens: 250,
  parts: [
    { kind: "tools", tokens: 150, text: "choir-exec" },
    { kind: "instructions", tokens: 60, text: "You are a personal agent." },
    { kind: "user", tokens: 15, text: "Hello\u001b[2J" },
    { kind: "user", tokens: 25, text: "What is new?" }
  ]
}
