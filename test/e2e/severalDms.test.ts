/** One agent on a phone and in a console at once, with real processes: who is answered where, and who decides. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option, Schedule } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { marks } from "../support/marks.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"
import { historyProblems } from "../support/verifyHistory.ts"
import { atFull, LAYER_MS_MAX } from "../support/size.ts"

const [PHONE, TABLET] = [4711, 4712]
const TOKEN = "1000:secret"
const SEND = 'call ledger.append {"note":"hello"}'

/** An agent at an admin's phone, an admin's console and somebody's tablet, in this order. */
const make = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    runtime: "process",
    secrets: { "bot-token": TOKEN, "git-token": "agent:canary-of-git" },
    config: ({ home }) => ({
      git_identities: { robot: { name: "Robot Demo", email: "robot@example.org", secret: "git-token" } },
      approvals: { confirm_external: "always" },
      heartbeat_interval_ms: 200,
      gateways: {
        bot: { type: "telegram", secret: "bot-token", api_root: telegram.url },
        terminal: { type: "console" }
      },
      dms: {
        phone: { gateway: "bot", user_id: String(PHONE), admin: true },
        me: { gateway: "terminal", user_id: "local", admin: true },
        tablet: { gateway: "bot", user_id: String(TABLET), timezone: "Asia/Tokyo" }
      },
      agents: {
        demo: {
          repo: { url: join(home, "sources/agent") },
          defaults: { workspace: "main", llm: "test", git_identity: "robot", dm: ["phone", "me", "tablet"] }
        }
      }
    })
  })
  const choird = yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  /** The first message to a user in which something stands. */
  const told = (user: number, words: string) =>
    Effect.map(
      bot.sent.first(({ chat, text }) => chat.id === user && text?.includes(words) === true),
      ({ text = "" }) => text
    )
  const texts = (user: number) =>
    Effect.map(bot.sent.all, (sent) => sent.filter(({ chat }) => chat.id === user).map(({ text = "" }) => text))
  const ledger = () => {
    const file = join(choir.workspace, "ledger")
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []
  }
  const verified = Effect.map(choir.events(session_id as SessionId), (history) =>
    assert.deepStrictEqual(historyProblems(session_id as SessionId, history), [])
  )
  return { ...choir, bot, choird, told, texts, ledger, verified }
})

class Choir extends Context.Service<Choir, Effect.Success<typeof make>>()("choir/test/SeveralDms") {
  static readonly layer = Layer.effect(Choir, make)
}

type Shown = Effect.Success<ReturnType<Choir["Service"]["settled"]>>
const messagesOf = (shown: Shown) => shown.flatMap((event) => (event.type === "message" ? [event.text] : []))

layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("an agent with several DMs", (it) => {
  it.effect("answers each question where it was asked, and holds all its DMs", () =>
    Effect.gen(function* () {
      const { api, bot, params, send, settled, texts, told, verified } = yield* Choir
      yield* bot.text(PHONE, "say to the phone")
      yield* told(PHONE, "to the phone")
      const { inbox_id } = yield* send("desk-1", "say to the desk")
      const shown = messagesOf(yield* settled(inbox_id))
      assert.deepStrictEqual(shown, ["to the desk"])
      yield* bot.text(TABLET, "say to the tablet")
      yield* told(TABLET, "to the tablet")
      assert.deepStrictEqual(yield* texts(PHONE), ["to the phone"])
      assert.deepStrictEqual(yield* texts(TABLET), ["to the tablet"])
      const { leases, resource_bindings } = yield* api.agents.status({ params })
      assert.deepInclude<object>(resource_bindings ?? {}, { dm: "phone", dms: ["phone", "me", "tablet"] })
      assert.deepStrictEqual(
        leases.flatMap(({ kind, name }) => (kind === "dm" ? [name] : [])),
        ["me", "phone", "tablet"]
      )
      yield* verified
    })
  )

  it.effect("asks for approval in the chat of the turn, where a word decides, as it does in the others", () =>
    Effect.gen(function* () {
      const { api, bot, ledger, params, send, settled, texts, told, verified } = yield* Choir
      yield* bot.text(PHONE, SEND)
      assert.match(yield* told(PHONE, "asks for your approval (number 1"), /send \/approve 1 or \/reject 1\.$/u)
      yield* bot.text(PHONE, "/status")
      yield* told(PHONE, "It is waiting for your approval (number 1): ledger.append")
      assert.deepStrictEqual(ledger(), [])
      yield* bot.text(PHONE, "/approve 1")
      assert.strictEqual(yield* told(PHONE, "Approved 1"), '◆ Approved 1: ledger.append {"note":"hello"}.')
      yield* told(PHONE, "appended")
      assert.lengthOf(ledger(), 1)

      // The console decides on what the tablet has asked for.
      yield* bot.text(TABLET, SEND)
      const card = yield* told(TABLET, "asks for your approval (number 2")
      assert.match(card, /^Open until [\d-]{10} \d\d:\d\d \(Asia\/Tokyo\)\.$/mu)
      assert.match(card, /send \/approve 2 or \/reject 2\.$/u)
      const { answer } = yield* api.chat.command({
        params,
        payload: { client_id: "no-2", text: "/reject 2 not today" }
      })
      assert.deepStrictEqual(answer, { kind: "notice", text: 'Rejected 2: ledger.append {"note":"hello"}.' })
      yield* told(TABLET, "Rejected: ledger.append")
      const { inbox_id } = yield* send("desk-2", "say still here")
      assert.deepStrictEqual(messagesOf(yield* settled(inbox_id)), ["still here"])
      assert.lengthOf(ledger(), 1)
      assert.isFalse((yield* texts(PHONE)).some((text) => text.includes("(number 2)")))
      const audit = yield* api.audit.list({ query: { agent_id: params.id } })
      const decided = audit.filter(({ action }) => action === "approval.approve" || action === "approval.reject")
      assert.sameMembers(
        decided.map(({ action, who }) => `${who} ${action}`),
        ["gateway:bot/phone approval.approve", "gateway:terminal/me approval.reject"]
      )
      yield* verified
    })
  )

  it.effect("is talked to from the phone that approved its change, and from all others", () =>
    Effect.gen(function* () {
      const { api, bot, params, told } = yield* Choir
      const before = yield* api.agents.status({ params })
      const image_version = (yield* api.agents.list())[0]?.image_version
      yield* bot.text(TABLET, `call choir.propose.skill ${JSON.stringify({ spec: marks({}), reason: "a test" })}`)
      const [, number = ""] = /approval \(number (\d+)/u.exec(yield* told(TABLET, "skill marks")) ?? []
      yield* bot.text(TABLET, `/approve ${number}`)
      yield* told(TABLET, "Done: skill marks")
      for (const [user, words] of [
        [TABLET, "the tablet still talks"],
        [PHONE, "the phone still talks"]
      ] as const) {
        yield* bot.text(user, `say ${words}`)
        assert.include(yield* told(user, words), words)
      }
      const [now] = yield* api.agents.list()
      assert.notStrictEqual(now?.image_version, image_version)
      const { leases, resource_bindings } = yield* api.agents.status({ params })
      assert.deepStrictEqual(resource_bindings, before.resource_bindings)
      assert.deepStrictEqual(leases, before.leases)
    })
  )

  atFull(it.effect)("tells the DM written in last what nobody asked for, as when the breaker stops it", () =>
    Effect.gen(function* () {
      const { api, choird, params, texts, told } = yield* Choir
      const patience = Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(600)])
      const before = [yield* texts(PHONE), yield* texts(TABLET)] as const
      let last = 0
      for (let crash = 0; crash < 3; crash += 1) {
        const running = Effect.filterOrFail(
          Effect.all([choird.agent, api.agents.status({ params })]),
          ([pid, { status }]) => status === "running" && Option.isSome(pid) && pid.value !== last
        )
        const [pid] = yield* Effect.retry(running, patience)
        last = Option.getOrThrow(pid)
        yield* Effect.sync(() => process.kill(last, "SIGKILL"))
      }
      yield* told(PHONE, "to start me again")
      assert.deepStrictEqual(yield* texts(TABLET), before[1])
      assert.lengthOf(yield* texts(PHONE), before[0].length + 1)
    })
  )
})
