/** Two people, a stranger, a group that shares their agent and one that has its own: whose words reach which agent, and who hears of what. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { route } from "#src/choird/gateway/route.ts"
import { peopleOf, unaskedDms, writersAt } from "#src/shared/config/people.ts"
import { agentView } from "../../support/agentView.ts"
import { BINDINGS, CONFIG } from "../../support/stores.ts"

const BOT = ResourceName.make("bot")
const named = (name: string) => ResourceName.make(name)
const PEOPLE = { bob: "1", eva: "3", stranger: "5" } as const
type Who = keyof typeof PEOPLE
const GROUPS = { shared: "-10", own: "-20" } as const

const agent = { repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small" } }
const config = Schema.decodeUnknownSync(Config)({
  ...CONFIG,
  dms: {
    bob: { gateway: "bot", user_id: PEOPLE.bob, admin: true },
    desk: { gateway: "terminal", user_id: "local", admin: true },
    eva: { gateway: "bot", user_id: PEOPLE.eva },
    shared: { gateway: "bot", user_id: GROUPS.shared },
    own: { gateway: "bot", user_id: GROUPS.own }
  },
  agents: { home: agent, clan: agent }
})
const HOME = ["desk", "bob", "eva", "shared"].map(named)
const views = [
  agentView(AgentId.make("home"), { bindings: { ...BINDINGS, dms: HOME } }),
  agentView(AgentId.make("clan"), { bindings: { ...BINDINGS, dm: named("own"), dms: [named("own")] } })
]

const PLACES = ["private", "shared", "own"] as const
const say = (who: Who, where: (typeof PLACES)[number], text: string) =>
  route(config, views, BOT, {
    user_id: PEOPLE[who],
    text,
    ...(where === "private" ? {} : { group: { chat_id: GROUPS[where], writer: who, addressed: true } })
  })

/** Which agent reads a text, and with whose command, or what becomes of it. */
const fate = (who: Who, where: (typeof PLACES)[number], text: string): string => {
  const to = say(who, where, text)
  if (to.type === "message") return `${to.agent_id}${to.forwarded === true ? ", as somebody else's words" : ""}`
  if (to.type === "command") return `${to.agent_id}, by ${to.writer}${to.in_private === true ? ", in private" : ""}`
  return to.type === "refuse" ? to.kind : to.type
}

const SEEN: Readonly<Record<Who, Readonly<Record<(typeof PLACES)[number], string>>>> = {
  bob: { private: "home", shared: "home, as somebody else's words", own: "clan, as somebody else's words" },
  eva: { private: "home", shared: "home, as somebody else's words", own: "clan, as somebody else's words" },
  // A stranger's words reach no agent that talks in private.
  stranger: { private: "stranger", shared: "NOT_MEMBER", own: "clan, as somebody else's words" }
}
const COMMANDED: typeof SEEN = {
  bob: { private: "home, by bob", shared: "home, by bob, in private", own: "clan, by bob, in private" },
  eva: { private: "home, by eva", shared: "home, by eva, in private", own: "stranger" },
  stranger: { private: "stranger", shared: "stranger", own: "stranger" }
}

describe("the words of", () => {
  for (const who of Object.keys(PEOPLE) as ReadonlyArray<Who>)
    for (const where of PLACES)
      it(`${who === "stranger" ? "a stranger" : who}, in ${where === "private" ? "private" : `the group that ${where === "own" ? "has its own agent" : "shares their agent"}`}`, () => {
        assert.strictEqual(fate(who, where, "what did Bob say about his salary?"), SEEN[who][where])
        for (const command of ["/memory", "/forget salary", "/events", "/context"])
          assert.strictEqual(fate(who, where, command), COMMANDED[who][where], command)
        const edited = where === "private" ? "x" : `${who} writes`
        assert.strictEqual(fate(who, where, edited), SEEN[who][where])
      })

  it("a stranger get one answer in the group, however often they write", () => {
    const [first, second] = [say("stranger", "shared", "a"), say("stranger", "shared", "b")]
    const once = (to: typeof first) => (to.type === "refuse" ? to.once : undefined)
    assert.isDefined(once(first))
    assert.strictEqual(once(first), once(second))
  })
})

describe("what nobody asked for", () => {
  it("reaches the admin's phone alone, and each person is named to the agent", () => {
    assert.deepStrictEqual(unaskedDms(config, HOME), [named("bob")])
    assert.deepStrictEqual([...peopleOf(config, HOME).keys()], [PEOPLE.bob, PEOPLE.eva])
    assert.deepStrictEqual<object>(Object.fromEntries(writersAt(config, HOME) ?? []), {
      desk: "bob",
      bob: "bob",
      eva: "eva"
    })
  })
})
