import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { EDGE, Rev } from "#schema/Ids.ts"
import { CONTEXT_CHARS_MAX, PromptContext } from "#schema/PromptContext.ts"
import { describeContext } from "#src/agent/model/describeContext.ts"
import { Sha256 } from "#schema/Ids.ts"
import type { Picture } from "#schema/Picture.ts"
import { pictureTokens } from "#src/shared/model/pictures.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { note } from "#src/agent/model/choirNote.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"

const TOOL = { name: "choir-exec", description: "Run a command.", parameters: { type: "object" } }
const described = (messages: ReadonlyArray<Message>) =>
  describeContext(EDGE, { rev: Rev.make(7), model: "m", context_window: 128_000, tools: [TOOL], messages }).pipe(
    Effect.provide(TokenCount.layer)
  )

describe("a described prompt", () => {
  it.live("names its parts in their order, and counts them all", () =>
    Effect.gen(function* () {
      const { parts, tokens } = yield* described([
        { role: "system", content: "You are an agent." },
        { role: "user", content: "Look around" },
        note("A job runs"),
        { role: "assistant", content: null, calls: [{ id: "c", name: "choir-exec", arguments: '{"command":"ls"}' }] },
        { role: "tool", call_id: "c", content: "a.txt" }
      ])
      assert.deepStrictEqual(
        parts.map(({ kind }) => kind),
        ["tools", "instructions", "user", "note", "assistant", "result"]
      )
      assert.strictEqual(parts[4]?.text, 'choir-exec {"command":"ls"}')
      assert.strictEqual(
        tokens,
        parts.reduce((sum, part) => sum + part.tokens, 0)
      )
      for (const part of parts) assert.isAbove(part.tokens, 0)
    })
  )

  it.live("counts the images that a request shows, as budgets do, and none that is too old to be shown", () =>
    Effect.gen(function* () {
      const picture = (at: number): Picture => ({
        sha256: Sha256.make(String(at).padStart(64, "0")),
        type: "image/png",
        bytes: 1000,
        width: 1500,
        height: 1000
      })
      const seen = (at: number): Message => ({
        role: "tool",
        call_id: `c${at}`,
        content: "seen",
        pictures: [picture(at)]
      })
      const messages = Array.from({ length: 22 }, (_, at) => seen(at))
      const { parts, tokens } = yield* described(messages)
      const plain = yield* described([{ role: "tool", call_id: "c", content: "seen" }])
      const text = plain.parts[1]?.tokens ?? 0
      assert.deepStrictEqual(
        parts.slice(1).map((part) => part.tokens - text),
        [...Array.from({ length: 5 }, () => 0), ...Array.from({ length: 17 }, () => 2000)]
      )
      assert.strictEqual(
        tokens,
        parts.reduce((sum, part) => sum + part.tokens, 0)
      )
      assert.strictEqual(pictureTokens(messages), 34_000)
    })
  )

  it.live("keeps the newest texts where they are too long together, and fits what choird takes", () =>
    Effect.gen(function* () {
      const long = (content: string): Message => ({ role: "user", content })
      const messages = Array.from({ length: 100 }, (_, index) => long(`${index} ${"word ".repeat(4000)}`))
      const context = yield* described([...messages, long("the end")])
      assert.isTrue(Schema.is(PromptContext)(context))
      assert.strictEqual(context.parts.at(-1)?.text, "the end")
      assert.match(context.parts.at(-2)?.text ?? "", /^99 word .*\[\d+ more characters\]$/su)
      assert.match(context.parts[1]?.text ?? "", /^\n\[\d+ more characters\]$/u)
      assert.isAbove(context.parts[1]?.tokens ?? 0, 4000)
      const shown = context.parts.reduce((sum, { text }) => sum + text.length, 0)
      assert.isBelow(shown, CONTEXT_CHARS_MAX * 1.1)
    })
  )
})
