/** Agents that look at images, each against the double of a provider that refuses what the real one refuses. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { ResourceName } from "#schema/Ids.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { modelClient } from "../support/modelClient.ts"
import { modelEntry } from "../support/modelNames.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import * as double from "../support/testing/Provider.ts"
import { inOrder } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken } from "../support/testing/TestAgent.ts"
import { pngOf } from "../support/pictures.ts"
import { temporaryWorkspace } from "../support/workspace.ts"

const PNG = pngOf(8, 8)
const DATA = PNG.toString("base64")

const reads = double.callTools([
  { name: "choir-fs-read", input: { path: "a.png" } },
  { name: "choir-fs-read", input: { path: "b.png" } }
])

/** Reads two pictures where it is told to look, and answers. */
const model = ({ body }: double.ProviderRequest): double.Reply => {
  const { input, messages } = body as { readonly input?: unknown; readonly messages?: unknown }
  const said = JSON.stringify(messages ?? input)
  return said.includes("look at both") && !said.includes("is a PNG image") ? reads : double.answer("I see.")
}

const agent = Effect.fnUntraced(function* (models: ReadonlyArray<object>) {
  const { root } = yield* temporaryWorkspace
  writeFileSync(join(root, "a.png"), PNG)
  writeFileSync(join(root, "b.png"), pngOf(8, 8, "b"))
  mkdirSync(join(root, "inbox"))
  writeFileSync(join(root, "inbox/photo.png"), PNG)
  const plane = yield* makeMemoryControlPlane
  const files = yield* Layer.build(Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root }))))
  const pictures = Layer.succeed(Pictures, yield* Effect.provideContext(Pictures, files))
  const read = yield* Effect.provideContext(fsRead, files)
  const llm = yield* modelClient
  const base = agentConfig()
  const small = base.models[ResourceName.make("small")]
  const names = models.map((_, index) => (index === 0 ? "small" : `other-${index}`))
  const entries = models.map((entry, index) => [
    names[index],
    { ...small, fallback: index === 0 ? names.slice(1) : [], ...entry }
  ])
  const config = { ...base, models: Object.fromEntries(entries) as typeof base.models }
  const run = (epoch: number) =>
    Effect.forkScoped(runAgent({ plane, script: inOrder(), llm, pictures, tools: [read], config, epoch }))
  const talk = Effect.fnUntraced(function* (text: string, attachments: ReadonlyArray<object> = []) {
    const before = spoken(plane.events).length
    yield* plane.say(text, attachments as never)
    yield* plane.until((events, state) => spoken(events).length > before && quiet(state))
    return spoken(plane.events).at(-1)?.payload.text
  })
  return { plane, root, run, talk }
})

const bodies = (provider: double.Provider) =>
  Effect.map(provider.requests.all, (all) => all.map(({ body }) => JSON.stringify(body)))

const SERVERS: ReadonlyArray<DialectName> = ["openai", "responses", "anthropic", "openrouter", "gemini", "mistral"]

const PHOTO = { path: "inbox/photo.png", name: "photo.png", mime: "image/png", bytes: PNG.length }

describe("an agent whose model takes images", () => {
  it.live.each(SERVERS)("is shown what it reads and what it is sent, and breaks no rule of %s", (dialect) =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect })
      yield* provider.otherwise(model)
      const entry = { ...modelEntry(dialect), ...(dialect === "openrouter" ? { provider: dialect } : {}) }
      const { run, talk } = yield* agent([{ ...entry, endpoint: provider.endpoint, temperature: null }])
      yield* run(1)
      assert.strictEqual(yield* talk("look at both"), "I see.")
      assert.strictEqual(yield* talk("and this", [PHOTO]), "I see.")
      const [first, second, third] = yield* bodies(provider)
      assert.notInclude(first, DATA)
      assert.include(second, DATA)
      assert.include(third, `[attached: photo.png, image/png, ${PNG.length} bytes, at inbox/photo.png]`)
      assert.lengthOf(third?.split(DATA) ?? [], 3)
      assert.deepStrictEqual(yield* provider.takeRefusals, [])
    })
  )

  it.live("is shown the same after a restart, from copies, and events hold no bytes of them", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect: "openai" })
      yield* provider.otherwise(model)
      const { plane, root, run, talk } = yield* agent([{ model: "gpt-4.1", endpoint: provider.endpoint }])
      const before = yield* run(1)
      yield* talk("look at both")
      yield* Fiber.interrupt(before)
      writeFileSync(join(root, "a.png"), pngOf(9, 9))
      yield* run(2)
      yield* talk("what was it?")
      const all = yield* bodies(provider)
      assert.include(all.at(-1), DATA)
      const messages = (text = "") => JSON.stringify((JSON.parse(text) as { readonly messages: unknown }).messages)
      assert.isTrue(messages(all.at(-1)).startsWith(messages(all[1]).slice(0, -1)))
      assert.notInclude(JSON.stringify(plane.events), DATA)
      assert.lengthOf(
        ofType(plane.events, "ToolResultCommitted").flatMap(({ payload }) => payload.pictures ?? []),
        2
      )
    })
  )
})

describe("an agent whose model takes no images", () => {
  it.live("is told of them in words, and so is a fallback without vision", () =>
    Effect.gen(function* () {
      const sees = yield* double.makeProviderOf({ dialect: "openai" })
      const blind = yield* double.makeProviderOf({ dialect: "deepseek" })
      yield* sees.script(reads, double.failing(503), double.failing(503))
      yield* blind.otherwise(() => double.answer("I was told."))
      const { run, talk } = yield* agent([
        { model: "gpt-4.1", endpoint: sees.endpoint },
        { model: "deepseek-v4", endpoint: blind.endpoint }
      ])
      yield* run(1)
      assert.strictEqual(yield* talk("look at both"), "I was told.")
      const [asked] = yield* bodies(blind)
      assert.include(asked, "a.png is a PNG image of 29 bytes, 8 × 8 pixels\\n[not shown: you cannot see images here")
      assert.notInclude(asked, "base64")
    })
  )

  it.live("is asked again without them where config.json says that it takes them, and never sent them again", () =>
    Effect.gen(function* () {
      for (const dialect of ["openrouter", "qwen-template", "deepseek"] as const) {
        const provider = yield* double.makeProviderOf({ dialect, vision: false })
        yield* provider.otherwise(model)
        const { run, talk } = yield* agent([{ model: "mine", images: true, endpoint: provider.endpoint }])
        const fiber = yield* run(1)
        assert.strictEqual(yield* talk("look at both"), "I see.", dialect)
        assert.strictEqual(yield* talk("thanks"), "I see.", dialect)
        assert.lengthOf(
          (yield* provider.takeRefusals).map(({ rule }) => rule),
          1,
          dialect
        )
        assert.include((yield* bodies(provider)).at(-1), "your provider refused this image")
        yield* Fiber.interrupt(fiber)
      }
    })
  )

  it.live("keeps the images that its provider took when it refuses a later one", () =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect: "openai" })
      yield* provider.script(
        reads,
        double.answer("I see."),
        double.failing(400, "Invalid image data"),
        double.answer("Not it.")
      )
      const { root, run, talk } = yield* agent([{ model: "gpt-4.1", endpoint: provider.endpoint }])
      yield* run(1)
      yield* talk("look at both")
      writeFileSync(join(root, "inbox/photo.png"), pngOf(8, 8, "broken"))
      assert.strictEqual(yield* talk("and this", [PHOTO]), "Not it.")
      const last = (yield* bodies(provider)).at(-1)
      assert.include(last, DATA)
      assert.notInclude(last, pngOf(8, 8, "broken").toString("base64"))
    })
  )
})
