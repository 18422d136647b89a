import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigWriter, EditRefused } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Pairings } from "#src/choird/gateway/Pairings.ts"
import type { AuditEntry } from "#src/choird/logs/Audit.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { agentView } from "../../support/agentView.ts"
import { memoryAudit, refusalsIn } from "../../support/audited.ts"
import { CONFIG } from "../../support/stores.ts"
import { makeJournal } from "../../support/testing/Journal.ts"

const BOT = ResourceName.make("bot")
const TABLET = { name: ResourceName.make("tablet"), gateway: BOT, admin: true }
const helper = { repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small", dm: "desk" } }
const config = (agents: object) => Schema.decodeUnknownSync(Config)({ ...CONFIG, agents })

const setUp = (agents: object = { helper }, refused = false) =>
  Effect.gen(function* () {
    const audited: Array<AuditEntry> = []
    const edits: Array<unknown> = []
    const told = makeJournal<string>()
    const restarted: Array<AgentId> = []
    const view = (agent_id: AgentId) => agentView(agent_id)
    const context = yield* Layer.build(
      Pairings.layer.pipe(
        Layer.provide(
          Layer.mergeAll(
            memoryAudit(audited),
            Layer.mock(ConfigStore, { home: "/h", current: Effect.succeed({ version: 1, config: config(agents) }) }),
            Layer.mock(ConfigWriter, {
              apply: (who, changes) =>
                refused
                  ? Effect.fail(new EditRefused({ reason: "other changes wait" }))
                  : Effect.sync(() => void edits.push([who, ...changes]))
            }),
            Layer.mock(Lifecycle, {
              view: (agent_id) => Effect.sync(() => view(agent_id)),
              restart: (agent_id) =>
                Effect.sync(() => {
                  restarted.push(agent_id)
                  return view(agent_id)
                })
            }),
            Layer.mock(Outbox, { tell: ({ text }) => Effect.sync(() => told.record(text)) })
          )
        )
      )
    )
    const run = <A, E>(work: Effect.Effect<A, E, Pairings>) => Effect.provideContext(work, context)
    const offer = (dm: Parameters<Pairings["Service"]["offer"]>[0] = TABLET) =>
      run(Effect.flatMap(Pairings, (pairings) => pairings.offer(dm)))
    const redeem = (user: string, text: string, bot = BOT) =>
      run(Effect.flatMap(Pairings, (pairings) => pairings.redeem(bot, user, text)))
    const problems = run(Effect.flatMap(Pairings, (pairings) => pairings.problems))
    return { audited, edits, offer, problems, redeem, restarted, told: told.journal }
  })

describe("pairing", () => {
  it.effect("lets in the one who sends the code, binds them to the agent, and uses the code up", () =>
    Effect.gen(function* () {
      const { audited, edits, offer, redeem, restarted, told } = yield* setUp()
      const { agent_id, code } = yield* offer()
      assert.strictEqual(agent_id, "helper")
      assert.match(code, /^[2-9A-HJ-NP-Z]{4}-[2-9A-HJ-NP-Z]{4}$/u)
      assert.isTrue(yield* redeem("77", `/start ${code.toLowerCase().replace("-", "")}`))
      assert.match(yield* told.at(0), /^You are in, as tablet\. Write to helper/u)
      assert.deepStrictEqual(edits, [
        [
          "gateway:bot/tablet",
          { path: ["dms", "tablet"], value: { gateway: "bot", user_id: "77", admin: true } },
          { path: ["agents", "helper", "defaults", "dm"], value: ["desk", "tablet"] }
        ]
      ])
      assert.deepStrictEqual(restarted, ["helper"])
      assert.isFalse(yield* redeem("78", code))
      assert.deepInclude(audited.at(-1), { who: "gateway:bot", action: "dm.pair" })
      assert.deepStrictEqual(audited.at(-1)?.detail, { paired: "tablet", user_id: "77", admin: true })
      assert.notInclude(JSON.stringify(audited), code)
    }).pipe(Effect.scoped)
  )

  it.effect("takes a code as people type it: with a blank, a long dash, or in lowercase", () =>
    Effect.gen(function* () {
      for (const dash of [" ", "  ", " - ", "\u2013", "\u00A0", ""]) {
        const { offer, redeem } = yield* setUp()
        const { code } = yield* offer()
        assert.isTrue(yield* redeem("77", ` ${code.toLowerCase().replace("-", dash)}\n`), JSON.stringify(dash))
      }
      const { audited, offer, redeem } = yield* setUp()
      yield* offer()
      for (const words of ["good luck", "hello you", "2222\n\n\n\n2222"]) assert.isFalse(yield* redeem("77", words))
      // Words with letters that no code has are no guesses.
      assert.deepStrictEqual(refusalsIn(audited).slice(1), [])
    }).pipe(Effect.scoped)
  )

  it.effect("takes a code for ten minutes, at its bot, and from nobody who has guessed five times", () =>
    Effect.gen(function* () {
      const { audited, offer, redeem } = yield* setUp()
      const { code } = yield* offer()
      assert.isFalse(yield* redeem("77", code, ResourceName.make("terminal")))
      assert.isFalse(yield* redeem("77", `the code is ${code}`))
      for (let guess = 0; guess < 5; guess += 1) assert.isFalse(yield* redeem("66", "2222-2222"))
      assert.isFalse(yield* redeem("66", code))
      assert.deepStrictEqual(
        refusalsIn(audited).slice(1),
        Array.from({ length: 5 }, () => "WRONG_CODE")
      )
      yield* TestClock.adjust("601 seconds")
      assert.isFalse(yield* redeem("77", code))
      const fresh = yield* offer()
      assert.isTrue(yield* redeem("66", fresh.code))
    }).pipe(Effect.scoped)
  )

  it.effect("ends all codes of a bot at which fifty wrong ones were sent, and a code whose name gets another", () =>
    Effect.gen(function* () {
      const { audited, offer, problems, redeem } = yield* setUp()
      const first = yield* offer()
      const second = yield* offer()
      assert.isFalse(yield* redeem("1", first.code))
      assert.deepStrictEqual(yield* problems, [])
      for (let user = 100; user < 151; user += 1) yield* redeem(String(user), "2222-2222")
      assert.isFalse(yield* redeem("2", second.code))
      // The operator hears of it, from status and from the next code, until that name has another one.
      const said = yield* problems
      assert.lengthOf(said, 1)
      assert.match(said[0] ?? "", /^the pairing code of tablet ended unused: strangers sent 50 wrong codes to bot;/u)
      assert.strictEqual(audited.filter(({ detail }) => detail?.["refused"] === "CODE_ENDED").length, 1)
      assert.strictEqual((yield* offer()).warning, said[0])
      assert.deepStrictEqual(yield* problems, [])
      assert.isUndefined((yield* offer()).warning)
    }).pipe(Effect.scoped)
  )

  it.effect("is refused for a bot or an agent that is not there, and for a name that is taken", () =>
    Effect.gen(function* () {
      const { offer } = yield* setUp()
      const kind = (dm: Parameters<typeof offer>[0]) => Effect.map(Effect.flip(offer(dm)), (refused) => refused.kind)
      assert.strictEqual(yield* kind({ ...TABLET, gateway: ResourceName.make("terminal") }), "UNKNOWN_GATEWAY")
      assert.strictEqual(yield* kind({ ...TABLET, name: ResourceName.make("phone") }), "DM_EXISTS")
      assert.strictEqual(yield* kind({ ...TABLET, agent_id: AgentId.make("nobody") }), "UNKNOWN_AGENT")
    }).pipe(Effect.scoped)
  )

  it.effect("binds no agent where several are there, and says nothing where config.json cannot be changed", () =>
    Effect.gen(function* () {
      const two = yield* setUp({ helper, other: helper })
      const { agent_id, code } = yield* two.offer()
      assert.isUndefined(agent_id)
      yield* two.redeem("77", code)
      assert.match(yield* two.told.at(0), /No agent is here yet/u)
      const busy = yield* setUp({ helper }, true)
      const offered = yield* busy.offer()
      assert.isTrue(yield* busy.redeem("77", offered.code))
      yield* Effect.repeat(Effect.yieldNow, { until: () => Effect.sync(() => busy.audited.length >= 3) })
      assert.deepStrictEqual(refusalsIn(busy.audited).at(-1), "NOT_APPLIED")
      assert.deepStrictEqual(yield* two.told.all, [yield* two.told.at(0)])
      assert.deepStrictEqual(yield* busy.told.all, [])
    }).pipe(Effect.scoped)
  )
})
