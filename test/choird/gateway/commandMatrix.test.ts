/** Every command, by who gives it, about whose agent, and where (R46). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { HELP_TOPICS, chatCommands } from "#schema/ChatCommand.ts"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import type { Group } from "#src/choird/gateway/Arrival.ts"
import { route } from "#src/choird/gateway/route.ts"
import { agentView } from "../../support/agentView.ts"
import { BINDINGS, CONFIG, PHONE } from "../../support/stores.ts"

const BOT = ResourceName.make("bot")
const PEOPLE = { admin: "1", regular: "3", stranger: "2" } as const
const GROUP = "-100200300"

const agent = { repo: { url: "/srv/helper" }, defaults: { workspace: "main", llm: "small" } }
const config = Schema.decodeUnknownSync(Config)({
  ...CONFIG,
  dms: {
    phone: { gateway: "bot", user_id: PEOPLE.admin, admin: true },
    tablet: { gateway: "bot", user_id: PEOPLE.regular },
    family: { gateway: "bot", user_id: GROUP }
  },
  agents: { own: agent, other: agent }
})

const DM_OF = { admin: PHONE, regular: ResourceName.make("tablet"), stranger: PHONE } as const
const FAMILY = ResourceName.make("family")

type Who = keyof typeof PEOPLE
type Where = "private" | "topic" | "group"

const ARGUMENTS: Readonly<Record<string, string>> = {
  " [job] <answer>": "dig it",
  " <message>": "x",
  " <when> <text>": "20m bread",
  " <words>": "my address",
  " <on or off>": "off",
  " <name>": "main",
  " <number>": "3"
}

/** What a command about an agent is typed like: with the agent's name where it takes one. */
const typed = (words: string, usage: string, whose: "own" | "other") =>
  /agent/u.test(usage) ? `/${words} ${whose}` : `/${words} ${ARGUMENTS[usage] ?? ""}`.trimEnd()

const group: Group = { chat_id: GROUP, writer: "Ada", addressed: true }

/** What the row of the table and the specification of roles say, written again and shorter. */
const expected = (who: Who, where: Where, admins: boolean, names: boolean, whose: "own" | "other", says: boolean) => {
  if (who === "stranger") return "stranger"
  if (where === "group" && admins) return "refuse"
  if (who === "regular" && admins) return "refuse"
  if (names && whose === "other" && (who === "regular" || where === "group")) return "refuse"
  return says ? "say" : "command"
}

describe("every command", () => {
  for (const who of Object.keys(PEOPLE) as ReadonlyArray<Who>)
    for (const whose of ["own", "other"] as const)
      for (const where of ["private", "topic", "group"] as const)
        it(`by ${who === "admin" ? "an admin" : `a ${who}`}, about the ${whose} agent, in a ${where} chat`, () => {
          const dm = where === "group" ? FAMILY : DM_OF[who]
          const views = [
            agentView(AgentId.make("own"), { bindings: { ...BINDINGS, dm, dms: [dm, DM_OF[who]] } }),
            agentView(AgentId.make("other"), { bindings: { ...BINDINGS, dm: ResourceName.make("desk") } })
          ]
          for (const { usage, who: whom, words } of chatCommands) {
            const text = typed(words, usage, whose)
            const routed = route(config, views, BOT, {
              user_id: PEOPLE[who],
              text,
              ...(where === "topic" ? { thread_id: 7 } : {}),
              ...(where === "group" ? { group } : {})
            })
            const says = words === "help"
            const want = expected(who, where, whom === "admin", /agent/u.test(usage), whose, says)
            assert.strictEqual(routed.type, want, text)
            if (routed.type === "command")
              assert.deepInclude<object>(
                routed,
                { dm, agent_id: "own", admin: who === "admin", writer: DM_OF[who] },
                text
              )
            if (routed.type === "refuse") assert.strictEqual(routed.kind, "NOT_ADMIN", text)
          }
        })

  it("that needs an agent is refused where none is, and an admin's others work there", () => {
    for (const { alone, usage, words } of chatCommands) {
      const text = typed(words, usage, "own")
      const routed = route(config, [], BOT, { user_id: PEOPLE.admin, text })
      const works = alone === true || /agent/u.test(usage)
      assert.strictEqual(routed.type, words === "help" ? "say" : works ? "command" : "refuse", text)
    }
  })

  it("in the help of a chat is one that works there: an admin's stay out of groups", () => {
    const help = (user_id: string, place: object) =>
      Object.keys(HELP_TOPICS).flatMap((topic) => {
        const routed = route(config, [], BOT, { user_id, text: `/help@double_bot ${topic}`, ...place })
        return (routed.type === "say" ? routed.text : routed.type).split("\n").map((line) => line.split(":", 1)[0])
      })
    const admins = chatCommands.flatMap(({ usage, who, words }) => (who === "admin" ? [`/${words}${usage}`] : []))
    assert.includeMembers<unknown>(help(PEOPLE.admin, {}), admins)
    assert.deepStrictEqual(help(PEOPLE.admin, { group }), help(PEOPLE.regular, {}))
    assert.deepStrictEqual(help(PEOPLE.regular, { group }), help(PEOPLE.regular, {}))
    assert.deepStrictEqual(new Set(help(PEOPLE.stranger, { group })), new Set(["stranger"]))
  })

  it("of a group is nothing to the bot unless it is for it, and what else is said there is nobody's order", () => {
    const views = [agentView(AgentId.make("own"), { bindings: { ...BINDINGS, dm: FAMILY } })]
    const said = (user_id: string, text: string, addressed: boolean) =>
      route(config, views, BOT, { user_id, text, group: { ...group, addressed } })
    for (const user_id of Object.values(PEOPLE)) {
      assert.strictEqual(said(user_id, "/status", false).type, "ignore")
      assert.strictEqual(said(user_id, "hello all", false).type, "ignore")
      assert.deepInclude<object>(said(user_id, "hello bot", true), {
        type: "message",
        forwarded: true,
        agent_id: "own"
      })
    }
    const other = route(config, views, BOT, { user_id: PEOPLE.admin, text: "hi", group: { ...group, chat_id: "-5" } })
    assert.strictEqual(other.type, "stranger")
  })
})
