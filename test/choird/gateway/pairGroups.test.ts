/** How a group is let in: by a code that an admin or a person of its agent writes there, to an agent of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import type { PairDm } from "#schema/DmsApi.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Pairings } from "#src/choird/gateway/Pairings.ts"
import type { AuditEntry } from "#src/choird/logs/Audit.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { agentView } from "../../support/agentView.ts"
import { memoryAudit, refusalsIn } from "../../support/audited.ts"
import { CONFIG, PHONE } from "../../support/stores.ts"
import { makeJournal } from "../../support/testing/Journal.ts"

const BOT = ResourceName.make("bot")
const TABLET = ResourceName.make("tablet")
const GROUP = "-100777"
const agent = (dm?: unknown) => ({
  repo: { url: "/srv/a" },
  defaults: { workspace: "main", llm: "small", ...(dm === undefined ? {} : { dm }) }
})
const config = Schema.decodeUnknownSync(Config)({
  ...CONFIG,
  dms: {
    phone: { gateway: "bot", user_id: "1", admin: true },
    tablet: { gateway: "bot", user_id: "3" },
    club: { gateway: "bot", user_id: "-5" },
    fresh: { gateway: "terminal", user_id: "local", admin: true }
  },
  agents: { helper: agent(["phone", "tablet"]), clan: agent(), host: agent("club"), fresh: agent("fresh") }
})
const FAMILY: PairDm = {
  name: ResourceName.make("family"),
  gateway: BOT,
  admin: false,
  agent_id: AgentId.make("clan"),
  group: true
}

const setUp = Effect.gen(function* () {
  const audited: Array<AuditEntry> = []
  const edits: Array<unknown> = []
  const told = makeJournal<string>()
  const context = yield* Layer.build(
    Pairings.layer.pipe(
      Layer.provide(
        Layer.mergeAll(
          memoryAudit(audited),
          Layer.mock(ConfigStore, { home: "/h", current: Effect.succeed({ version: 1, config }) }),
          Layer.mock(ConfigWriter, { apply: (_, changes) => Effect.sync(() => void edits.push(...changes)) }),
          Layer.mock(Lifecycle, {
            view: (agent_id) => Effect.sync(() => agentView(agent_id)),
            restart: (agent_id) => Effect.sync(() => agentView(agent_id))
          }),
          Layer.mock(Outbox, { tell: ({ dm, text }) => Effect.sync(() => told.record(`${dm}: ${text}`)) })
        )
      )
    )
  )
  const run = <A, E>(work: (pairings: Pairings["Service"]) => Effect.Effect<A, E>) =>
    Effect.provideContext(Effect.flatMap(Pairings, work), context)
  return {
    audited,
    edits,
    told: told.journal,
    offer: (dm: PairDm) => run((pairings) => pairings.offer(dm)),
    redeem: (user_id: string, text: string) => run((pairings) => pairings.redeem(BOT, user_id, text)),
    inGroup: (user_id: string, text: string, writer?: ResourceName) =>
      run((pairings) => pairings.redeemGroup(BOT, { chat_id: GROUP, user_id, text, writer })),
    recognise: (user_id: string, text: string) => run((pairings) => pairings.recognise(BOT, user_id, text))
  }
})

describe("a group's pairing", () => {
  it.effect("is done by an admin who writes the code there, as a command or behind the bot's name, once", () =>
    Effect.gen(function* () {
      for (const typed of [(code: string) => `/start@double_bot ${code}`, (code: string) => `@double_bot ${code}`]) {
        const { edits, inGroup, offer, told } = yield* setUp
        const { code, shares } = yield* offer(FAMILY)
        assert.deepStrictEqual(shares, [])
        assert.isTrue(yield* inGroup("1", typed(code), PHONE))
        assert.strictEqual(
          yield* told.at(0),
          "family: This group is in, as family. Mention me or reply to me, and clan answers everybody here; /help lists what else you can send."
        )
        assert.deepStrictEqual<unknown>(edits, [
          { path: ["dms", "family"], value: { gateway: "bot", user_id: GROUP } },
          { path: ["agents", "clan", "defaults", "dm"], value: "family" }
        ])
        assert.isFalse(yield* inGroup("1", typed(code), PHONE))
      }
    }).pipe(Effect.scoped)
  )

  it.effect("takes the place of the console that `agent init` gave its agent", () =>
    Effect.gen(function* () {
      const { edits, inGroup, offer } = yield* setUp
      const { code } = yield* offer({ ...FAMILY, agent_id: AgentId.make("fresh") })
      assert.isTrue(yield* inGroup("1", code, PHONE))
      assert.deepInclude(edits, { path: ["agents", "fresh", "defaults", "dm"], value: "family" })
    }).pipe(Effect.scoped)
  )

  it.effect("is done by nobody else, and not by a code for a person", () =>
    Effect.gen(function* () {
      const { audited, edits, inGroup, offer, redeem } = yield* setUp
      const { code } = yield* offer(FAMILY)
      assert.isFalse(yield* inGroup("9", code))
      assert.isFalse(yield* inGroup("3", code, TABLET))
      assert.isFalse(yield* redeem("9", code))
      assert.deepStrictEqual(refusalsIn(audited), ["none", "NOT_ADMIN", "NOT_ADMIN", "WRONG_CODE"])
      const { code: personal } = yield* offer({
        name: ResourceName.make("eva"),
        gateway: BOT,
        admin: false,
        agent_id: AgentId.make("helper")
      })
      assert.isFalse(yield* inGroup("1", personal, PHONE))
      assert.deepStrictEqual(edits, [])
      assert.isTrue(yield* inGroup("1", code, PHONE))
    }).pipe(Effect.scoped)
  )

  it.effect("gives a group an agent of its own, and a person none that is a group's", () =>
    Effect.gen(function* () {
      const { offer } = yield* setUp
      const refused = (dm: PairDm) => Effect.map(Effect.flip(offer(dm)), ({ kind, reason }) => `${kind}: ${reason}`)
      const helper = { ...FAMILY, agent_id: AgentId.make("helper") }
      assert.strictEqual(
        yield* refused(helper),
        "GROUP: helper talks with phone, tablet in private, and everybody in a group would take part in that conversation"
      )
      const { agent_id: _, ...unnamed } = FAMILY
      assert.strictEqual(yield* refused(unnamed), "GROUP: a group needs an agent of its own")
      assert.match(yield* refused({ ...FAMILY, admin: true }), /^GROUP: a group cannot be an admin/u)
      const { group: __, ...person } = { ...FAMILY, agent_id: AgentId.make("host") }
      assert.strictEqual(yield* refused(person), "GROUP: host is the agent of the group club")
      assert.deepStrictEqual<unknown>((yield* offer({ ...FAMILY, agent_id: AgentId.make("host") })).shares, ["club"])
    }).pipe(Effect.scoped)
  )
})

describe("a code", () => {
  it.effect("is known again where a person with a DM sends it, and stays good", () =>
    Effect.gen(function* () {
      const { offer, recognise, redeem } = yield* setUp
      const eva = { name: ResourceName.make("eva"), gateway: BOT, admin: false, agent_id: AgentId.make("helper") }
      const { code, shares } = yield* offer(eva)
      assert.deepStrictEqual(shares, [PHONE, TABLET])
      assert.deepInclude<object>((yield* recognise("1", code)) ?? {}, { name: "eva", agent_id: "helper" })
      assert.isUndefined(yield* recognise("1", "2222-2222"))
      assert.isUndefined(yield* recognise("1", "good morning"))
      assert.isTrue(yield* redeem("77", code))
      assert.isUndefined(yield* recognise("1", code))
    }).pipe(Effect.scoped)
  )
})
