import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SecretName } from "#schema/Ids.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { toBlocks } from "#src/agent/notion/toBlocks.ts"
import { notionQuery } from "#src/agent/tools/notionQuery.ts"
import { answeringServer } from "../../support/answeringServer.ts"
import { NOTION_TOKEN, notionServer } from "../../support/notionServer.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const SECRET = SecretName.make("notion")
const HOME = "a".repeat(32)

const MARKDOWN = `# Plan

Words with **bold**, *slanted*, \`code\`, ~~gone~~ and a [link](https://a.example/).

- one
  - within
- [x] done
1. first

> said

\`\`\`json
{"a": 1}
\`\`\`

| a | b |
| --- | --- |
| 1 | 2 |

---

the end`

/** The tool with a token for the API at this address. */
const toolAt = Effect.fnUntraced(function* (endpoint: string, token = NOTION_TOKEN) {
  const { root } = yield* temporaryWorkspace
  const services = yield* toolServices(root, { ...agentConfig(), notion: { secret: SECRET, endpoint } })
  const store = yield* Effect.provideContext(SecretStore, services)
  yield* store.replaceAll(new Map([[SECRET, Redacted.make(token)]]))
  const api = OutsideApi.layer.pipe(
    Layer.provide([
      Layer.fresh(NodeHttpClient.layerUndiciOptions({ allowH2: false })),
      AgentSettings.layer(settingsOf(1))
    ])
  )
  const tool = yield* notionQuery.pipe(Effect.provideContext(services), Effect.provideContext(yield* Layer.build(api)))
  const run = Effect.fnUntraced(function* (input: unknown) {
    return yield* (yield* tool.prepare(input)).run(laneThatSaw())
  })
  return { run, tool }
})

const notion = Effect.fnUntraced(function* (token = NOTION_TOKEN, limits: ReadonlyArray<number> = []) {
  const server = yield* notionServer([{ id: HOME, title: "Home", children: [] }], limits)
  return { ...server, ...(yield* toolAt(server.origin, token)) }
})

const member = (output: unknown, name: string): unknown => (output as Readonly<Record<string, unknown>>)[name]

describe("choir.notion.query", () => {
  it.effect("makes a page of Markdown, and reads the same Markdown from it", () =>
    Effect.gen(function* () {
      const { run } = yield* notion()
      const made = yield* run({ action: "create", parent: HOME, title: "Trip", markdown: MARKDOWN })
      assert.deepInclude(made, { status: "success", acted: "verified" })
      const read = yield* run({ action: "read", id: member(made.output, "id") })
      assert.strictEqual(member(read.output, "markdown"), MARKDOWN)
      assert.deepInclude(read.output, { title: "Trip" })
      assert.deepStrictEqual(read.sources, ["notion"])
      const found = yield* run({ action: "search", query: "trip" })
      assert.lengthOf(member(found.output, "found") as ReadonlyArray<unknown>, 1)
      assert.deepStrictEqual(found.sources, ["notion"])
    })
  )

  it.effect("goes through long pages and long texts in parts that the API takes", () =>
    Effect.gen(function* () {
      const { asked, run } = yield* notion()
      const markdown = Array.from({ length: 250 }, (_, n) => `- entry ${n} ${"x".repeat(n === 7 ? 5000 : 1)}`).join(
        "\n"
      )
      assert.deepInclude(yield* run({ action: "append", id: HOME, markdown }), {
        summary: "250 block(s) added",
        acted: "verified"
      })
      assert.lengthOf(asked, 3)
      const read = yield* run({ action: "read", id: `https://www.notion.so/Home-${HOME}?pvs=4` })
      assert.strictEqual(member(read.output, "markdown"), markdown)
    })
  )

  it.effect("queries a data source in pages, and makes an entry under the property that holds its titles", () =>
    Effect.gen(function* () {
      const { run } = yield* notion()
      const source = "d".repeat(32)
      for (const title of ["a", "b"]) yield* run({ action: "create", data_source: source, title })
      const first = yield* run({
        action: "query",
        id: source,
        limit: 2,
        filter: { property: "Task", title: { is_not_empty: true } }
      })
      const next = member(first.output, "next")
      assert.isString(next)
      const second = yield* run({ action: "query", id: source, limit: 2, cursor: next })
      assert.lengthOf(member(second.output, "found") as ReadonlyArray<unknown>, 1)
      assert.match((yield* run({ action: "query", id: source, filter: { x: 1 } })).summary, /answered 400.*filter/u)
    })
  )

  it.effect("waits for a short limit, and says when a long one ends", () =>
    Effect.gen(function* () {
      const short = yield* notion(NOTION_TOKEN, [0])
      assert.strictEqual((yield* short.run({ action: "search" })).status, "success")
      const long = yield* notion(NOTION_TOKEN, [600])
      assert.match(
        (yield* long.run({ action: "append", id: HOME, markdown: "x" })).summary,
        /no more requests for 600 s/u
      )
    })
  )

  it.effect("says what is wrong without the token, and would no longer ask a person about what cannot be", () =>
    Effect.gen(function* () {
      const { run: stranger } = yield* notion("ntn_another-token")
      const refused = yield* stranger({ action: "read", id: HOME })
      assert.match(refused.summary, /answered 401.*is the secret right/u)
      assert.notInclude(JSON.stringify(refused), "another-token")
      const { asked, run, tool } = yield* notion()
      assert.match((yield* run({ action: "read", id: "b".repeat(32) })).summary, /shared with your integration/u)
      const wrong = [
        { action: "read" },
        { action: "read", id: "x" },
        { action: "append", id: HOME },
        { action: "create", title: "t" },
        { action: "delete", id: HOME }
      ]
      for (const input of wrong) assert.strictEqual((yield* Effect.result(run(input)))._tag, "Failure")
      assert.lengthOf(asked, 1)
      const effects = yield* Effect.forEach(
        [{ action: "search" }, { action: "append", id: HOME, markdown: "x" }],
        (input) => Effect.map(tool.prepare(input), ({ effect }) => effect)
      )
      assert.deepStrictEqual(effects, ["none", "external"])
    })
  )

  it.effect("is sure that blocks are there only where the answer names each of them", () =>
    Effect.gen(function* () {
      const block = { object: "block", id: "b".repeat(32), type: "paragraph" }
      const answers = [
        [[block, { ...block, id: "c".repeat(32) }], "verified"],
        [[block], "accepted"],
        [[block, { object: "block" }], "accepted"],
        [[], "accepted"]
      ] as const
      for (const [results, acted] of answers) {
        const body = { object: "list", results, has_more: false, next_cursor: null }
        const { origin } = yield* answeringServer(() => ({ status: 200, body }))
        const { run } = yield* toolAt(origin)
        assert.deepInclude(yield* run({ action: "append", id: HOME, markdown: "one\n\ntwo" }), {
          status: "success",
          acted
        })
      }
    })
  )

  it("makes blocks of any text, within what one request takes", () => {
    const strange = [
      "",
      "|",
      "| |",
      "```",
      "#",
      "> ",
      "- ",
      "* **",
      "[a](b)",
      "`".repeat(50),
      "\u{d800}",
      "- a\n".repeat(500),
      "*".repeat(5000),
      `- ${"  - ".repeat(300)}`
    ]
    for (const text of strange)
      for (const block of toBlocks(text)) {
        const content = block[typeof block["type"] === "string" ? block["type"] : ""] as {
          readonly rich_text?: ReadonlyArray<unknown>
        }
        assert.isAtMost(content.rich_text?.length ?? 0, 100)
      }
  })
})
