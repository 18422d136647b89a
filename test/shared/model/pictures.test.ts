/** Pictures in the requests of each API, for models that take them and for others. */
import { assert, describe, it } from "@effect/vitest"
import { DIALECTS, type DialectName, refusalOf } from "#demo/dialects/Dialect.ts"
import type { Picture } from "#schema/Picture.ts"
import { CODECS } from "#src/shared/model/codecs.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { newestPictures, pictureTokens, shownSize, takesPictures } from "#src/shared/model/pictures.ts"
import type { PictureData } from "#src/shared/model/Asked.ts"
import { quirkWarnings } from "#src/shared/model/quirks.ts"
import { TRAITS } from "../../support/testing/Provider.ts"
import { modelOf, TOOL } from "../../support/askedCodec.ts"
import { pngOf } from "../../support/pictures.ts"

const pictureOf = (name: string, more: Partial<Picture> = {}): Picture => ({
  type: "image/png",
  sha256: name.repeat(64).slice(0, 64),
  bytes: 1000,
  width: 300,
  height: 200,
  ...more
})

const [A, B, C] = [pictureOf("a"), pictureOf("b"), pictureOf("c")]
const DATA = new Map([A, B, C].map(({ sha256 }) => [sha256, pngOf(300, 200, sha256).toString("base64")]))
const dataOf = ({ sha256 }: Picture) => DATA.get(sha256) ?? ""

const call = (id: string) => ({ id, name: TOOL.name, arguments: "{}" })
const CONVERSATION: ReadonlyArray<Message> = [
  { role: "system", content: "You are an agent." },
  { role: "user", content: "What is this?\n[attached: a.png]", pictures: [A] },
  { role: "assistant", content: null, calls: [call("c-1-0"), call("c-1-1")] },
  { role: "tool", call_id: "c-1-0", content: "b.png is a PNG image", pictures: [B] },
  { role: "tool", call_id: "c-1-1", content: "c.png is a PNG image", pictures: [C] }
]

const bodyOf = (entry: object, messages = CONVERSATION, pictures: PictureData = DATA) => {
  const model = modelOf({ max_tokens: 2000, temperature: null, ...entry })
  return JSON.parse(CODECS[model.api].body({ model, messages, tools: [TOOL], pictures })) as Record<string, unknown>
}
const messagesIn = (body: Record<string, unknown>) => body["messages"] as ReadonlyArray<Record<string, unknown>>

const SEES: ReadonlyArray<readonly [DialectName, object]> = [
  ["openai", { model: "gpt-4.1" }],
  ["openrouter", { model: "anthropic/claude-sonnet-4.5", provider: "openrouter" }],
  ["kimi", { model: "kimi-k2.6" }],
  ["gemini", { model: "gemini-2.5-pro" }],
  ["mistral", { model: "mistral-medium-3" }],
  ["responses", { model: "gpt-5.1", api: "responses" }],
  ["anthropic", { model: "claude-sonnet-4-5", api: "messages" }]
]

describe("pictures in a request", () => {
  it.each(SEES)("break no rule of %s", (name, entry) => {
    for (const messages of [CONVERSATION, [...CONVERSATION, { role: "user", content: "And?" } as const]]) {
      const body = bodyOf(entry, messages)
      const text = JSON.stringify(body)
      for (const picture of [A, B, C]) assert.include(text, dataOf(picture))
      const headers = { "anthropic-version": "2023-06-01" }
      const refusal = refusalOf(DIALECTS[name], { headers, bytes: text.length, body }, { ...TRAITS, vision: true })
      assert.isUndefined(refusal, refusal?.message)
    }
  })

  it("stand in results where the API has them there, and behind the last result in chat completions", () => {
    const [, result] = messagesIn(bodyOf({ model: "claude-sonnet-4-5", api: "messages", cache: "off" })).slice(1)
    const source = (picture: Picture) => ({ type: "base64", media_type: "image/png", data: dataOf(picture) })
    assert.deepStrictEqual<unknown>((result?.["content"] as ReadonlyArray<unknown> | undefined)?.[0], {
      type: "tool_result",
      tool_use_id: "c-1-0",
      content: [
        { type: "text", text: "b.png is a PNG image" },
        { type: "image", source: source(B) }
      ]
    })
    const { input } = bodyOf({ model: "gpt-5.1", api: "responses" })
    assert.deepStrictEqual<unknown>((input as ReadonlyArray<unknown>)[3], {
      type: "function_call_output",
      call_id: "c-1-0",
      output: [
        { type: "input_text", text: "b.png is a PNG image" },
        { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${dataOf(B)}` }
      ]
    })
    const chat = messagesIn(bodyOf({ model: "gpt-4.1" }))
    const url = (picture: Picture) => ({
      type: "image_url",
      image_url: { url: `data:image/png;base64,${dataOf(picture)}` }
    })
    assert.deepStrictEqual(
      chat.map(({ role }) => role),
      ["system", "user", "assistant", "tool", "tool", "user"]
    )
    assert.strictEqual(chat[3]?.["content"], "b.png is a PNG image")
    assert.deepStrictEqual<unknown>((chat[5]?.["content"] as ReadonlyArray<unknown> | undefined)?.slice(0, 2), [
      url(B),
      url(C)
    ])
    assert.match(JSON.stringify(chat[5]), /<choir-note>The images of the results above/u)
  })

  it("are told in words to a model that takes none", () => {
    for (const entry of [
      { model: "deepseek-chat" },
      { model: "m" },
      { model: "gpt-5.1", api: "responses", images: false },
      { model: "claude-sonnet-4-5", api: "messages", images: false }
    ]) {
      const text = JSON.stringify(bodyOf(entry))
      assert.notMatch(text, /base64/u)
      assert.lengthOf(text.match(/not shown: you cannot see images here/gu) ?? [], 3)
    }
  })

  it("are told in words where their bytes are gone or were refused", () => {
    const some = new Map(
      [...DATA]
        .filter(([digest]) => digest !== A.sha256)
        .map(([digest, data]) => [digest, digest === B.sha256 ? "" : data])
    )
    const text = JSON.stringify(bodyOf({ model: "gpt-4.1" }, CONVERSATION, some))
    assert.match(text, /What is this\?.{1,60}\[not shown any more: it is not kept/u)
    assert.match(text, /b\.png is a PNG image\\n\[not shown: your provider refused this image/u)
    assert.include(text, dataOf(C))
  })

  it("show the newest twenty and 12 MiB of them, and leave old ones out five at a time", () => {
    const looks = (count: number, bytes = 1000): ReadonlyArray<Message> =>
      Array.from({ length: count }, (_, index) => ({
        role: "tool",
        call_id: `c-${index}`,
        content: "a picture",
        pictures: [pictureOf("d", { bytes })]
      }))
    assert.deepStrictEqual(
      [0, 1, 20, 21, 25, 26].map((count) => newestPictures(looks(count)).length),
      [0, 1, 20, 16, 20, 16]
    )
    assert.deepStrictEqual(
      [3, 4, 5].map((count) => newestPictures(looks(count, 3_700_000)).length),
      [3, 3, 3]
    )
    const shown = JSON.stringify(bodyOf({ model: "gpt-4.1" }, [...CONVERSATION.slice(0, 3), ...looks(25)]))
    assert.match(shown, /\[not shown any more: newer images took its place\]/u)
  })

  it("begin a request as the one before it began", () => {
    const before = JSON.stringify(messagesIn(bodyOf({ model: "gpt-4.1" })))
    const after = JSON.stringify(
      messagesIn(bodyOf({ model: "gpt-4.1" }, [...CONVERSATION, { role: "user", content: "And?" }]))
    )
    assert.isTrue(after.startsWith(before.slice(0, -1)))
  })

  it("weigh tokens and not characters", () => {
    assert.strictEqual(pictureTokens(CONVERSATION), 3 * 80)
    assert.strictEqual(
      pictureTokens([{ role: "user", content: "", pictures: [pictureOf("e", { width: 9000, height: 9000 })] }]),
      4800
    )
    const { height: _, width: __, ...sizeless } = A
    assert.strictEqual(pictureTokens([{ role: "user", content: "", pictures: [sizeless] }]), 4800)
    const asked = { messages: CONVERSATION, model: modelOf({ model: "gpt-4.1" }), pictures: DATA }
    assert.deepStrictEqual(shownSize(asked), { chars: 3 * dataOf(A).length, tokens: 240 })
    assert.deepStrictEqual(shownSize({ ...asked, model: modelOf({ model: "m" }) }), { chars: 0, tokens: 0 })
  })
})

describe("models that take images", () => {
  it.each([
    "gpt-4o",
    "openai/gpt-5.1",
    "o3",
    "claude-opus-4-8",
    "anthropic/claude-sonnet-4.5",
    "gemini-3-pro-preview",
    "google/gemini-2.5-flash",
    "kimi-k2.6",
    "qwen3.5-27b",
    "Qwen/Qwen3-VL-8B",
    "pixtral-large-latest",
    "llama-3.2-90b-vision-instruct"
  ])("include %s", (model) => assert.isTrue(takesPictures(modelOf({ model }))))

  it.each([
    "gpt-3.5-turbo",
    "openai/gpt-oss-120b",
    "o3-mini",
    "deepseek-v4",
    "kimi-k2-thinking",
    "codestral-latest",
    "llama3.1",
    "offline-model"
  ])("do not include %s unless config.json says so", (model) => {
    assert.isFalse(takesPictures(modelOf({ model })))
    assert.isTrue(takesPictures(modelOf({ model, images: true })))
  })

  it("are warned of where config.json says so of a model that is known to take none", () => {
    const keys = (entry: Readonly<Record<string, unknown>>) => quirkWarnings(modelOf(entry)).map(({ key }) => key)
    assert.deepStrictEqual(keys({ model: "deepseek-chat", images: true }), ["images"])
    assert.deepStrictEqual(keys({ model: "deepseek-chat", images: false }), [])
    assert.deepStrictEqual(keys({ model: "mine", images: true }), [])
  })
})
