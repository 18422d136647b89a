/** What a person and a script are told when the model fails, and that the agent answers the next message. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { choirctl, documents } from "../support/choirctl.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import {
  answer,
  failing,
  makeProvider,
  offlineModel,
  rateLimited,
  raw,
  type Reply
} from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"

const USER = 4711
const TOKEN = "1000:secret"

const start = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const telegram = yield* makeTelegram
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    secrets: { "bot-token": TOKEN },
    config: ({ home }) => ({
      heartbeat_interval_ms: 200,
      rate_limit_retry_ms: 100,
      gateways: {
        terminal: { type: "console" },
        bot: { type: "telegram", secret: "bot-token", api_root: telegram.url }
      },
      dms: {
        me: { gateway: "terminal", user_id: "local", admin: true },
        phone: { gateway: "bot", user_id: String(USER), admin: true }
      },
      agents: {
        demo: {
          repo: { url: join(home, "sources/agent") },
          defaults: { workspace: "main", llm: "test", dm: ["me", "phone"] }
        }
      }
    })
  })
  yield* choir.start
  yield* choir.build
  yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const ask = (...flags: ReadonlyArray<string>) =>
    choirctl(choir.home, ["chat", "demo", "--message", "say hello", ...flags])
  return { ...choir, ask, bot: telegram.bot(TOKEN), provider }
})

interface Failure {
  readonly name: string
  readonly replies: ReadonlyArray<Reply>
  readonly code: number
  readonly says: RegExp
}

const HTML = raw("<html><body>Sign in</body></html>", 200, "text/html")
const FAILURES: ReadonlyArray<Failure> = [
  {
    name: "401",
    replies: [failing(401, "Incorrect API key.")],
    code: 1,
    says: /401.*secret set.*Incorrect API key\. Nothing/u
  },
  { name: "402", replies: [failing(402, "Insufficient credits")], code: 1, says: /402.*Insufficient credits/u },
  { name: "404", replies: [failing(404, "No such model")], code: 1, says: /404.*endpoint and name.*No such model/u },
  { name: "HTML", replies: [HTML], code: 1, says: /could not answer/u }
]

/** Failures after which the model is asked again. */
const PASSING: ReadonlyArray<readonly [name: string, ...replies: ReadonlyArray<Reply>]> = [
  ["429 twice", rateLimited(), rateLimited()],
  ["500", failing(500, "Overloaded")]
]

const messages = (events: ReadonlyArray<unknown>) =>
  (events as ReadonlyArray<ChatEvent>).flatMap((event) => (event.type === "message" ? [event] : []))

describe("choirctl chat --message when the model fails", () => {
  it.live("says why, exits with 1, or 75 where it may pass, and the agent answers the next message", () =>
    Effect.gen(function* () {
      const { ask, bot, home, provider } = yield* start
      for (const { code, name, replies, says } of FAILURES) {
        yield* provider.script(...replies)
        const shown = yield* ask()
        assert.deepStrictEqual([shown.code, shown.out], [code, ""], name)
        assert.match(shown.err, /^error: I could not answer: /mu, name)
        assert.match(shown.err, says, name)

        yield* provider.script(...replies)
        const told = yield* ask("--json")
        const kinds = messages(documents(told)).map(({ kind }) => kind)
        assert.strictEqual(told.code, code, name)
        assert.include(kinds, "error", name)
        assert.notInclude(kinds, "reply", name)

        const next = yield* ask()
        assert.deepStrictEqual([next.code, next.out], [0, "hello\n"], name)

        yield* provider.script(...replies)
        const before = (yield* bot.sent.all).length
        yield* bot.text(USER, `what of ${name}?`)
        const sent = yield* bot.sent.first(({ text }) => text !== undefined && says.test(text), before)
        assert.strictEqual(sent.chat.id, USER)
      }
      for (const [name, ...replies] of PASSING) {
        yield* provider.script(...replies)
        const shown = yield* ask()
        assert.deepStrictEqual([shown.code, shown.out], [0, "hello\n"], name)
      }
      const file = join(home, "config.json")
      const config = JSON.parse(readFileSync(file, "utf8"))
      const { endpoint } = config.models.test
      for (const [address, code] of [
        ["http://127.0.0.1:1/v1", 75],
        [endpoint, 0]
      ] as const) {
        config.models.test.endpoint = address
        writeFileSync(file, JSON.stringify(config))
        assert.strictEqual((yield* choirctl(home, ["config", "apply", "--yes"])).code, 0)
        const shown = yield* ask("--json")
        assert.strictEqual(shown.code, code, shown.err)
        const kinds = messages(documents(shown)).map(({ kind }) => kind)
        // One line says that it is asked again for a minute, and then that no answer came.
        assert.deepStrictEqual(kinds, code === 0 ? ["reply"] : ["notice", "outage"])
      }
      yield* provider.script(Effect.never)
      const before = (yield* provider.requests.all).length
      const waiting = yield* Effect.forkChild(ask(), { startImmediately: true })
      yield* provider.requests.at(before)
      yield* choirctl(home, ["chat", "demo"], { stdin: "/stop\n" })
      const stopped = yield* Fiber.join(waiting)
      assert.deepStrictEqual([stopped.code, stopped.out], [1, ""])
      assert.include(stopped.err, "Stopped.")

      // The exit code is that of the last message of several.
      yield* provider.script(failing(401), answer("better"))
      const lines = yield* choirctl(home, ["chat", "demo"], { stdin: "one\ntwo\n" })
      assert.deepStrictEqual([lines.code, lines.out], [1, "better\n"])
    }).pipe(Effect.scoped)
  )
})
