import { assert, describe, it } from "@effect/vitest"
import { chatCommands, HELP_TOPICS, type HelpTopic, mayGive, steeringWords } from "#schema/ChatCommand.ts"
import { menuOf, readCommand } from "#src/choird/chatcommands/readCommand.ts"
import { session } from "#src/choirctl/commands/session.ts"

/** The commands of all topics of help. */
const help = (admin: boolean) =>
  Object.keys(HELP_TOPICS).flatMap((topic) => {
    const read = readCommand(`/help ${topic}`, admin)
    const [title, lines = ""] = read?.type === "say" ? read.text.split(":\n", 2) : []
    return title === HELP_TOPICS[topic as HelpTopic] ? (lines.split("\n\n")[0] ?? "").split("\n") : []
  })

/** An argument that each usage takes. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  " <agent> [key=value …]": "helper llm=large",
  " <agent>": "helper",
  " <name>": "large",
  " <name> [default]": "large default",
  " <number>": "3",
  " <message>": "be quick",
  " [job] <answer>": "dig the main one",
  " <on or off>": "on",
  " <words>": "my address",
  " <when> <text>": "20m bread"
}

describe("the table of a chat's commands", () => {
  for (const admin of [false, true])
    it(`is all that ${admin ? "an admin's" : "a regular"} parser, help and menu have, and no more`, () => {
      const given = chatCommands.filter(({ words }) => mayGive(words, admin))
      assert.deepStrictEqual(
        help(admin).toSorted(),
        given.map((row) => `/${row.words}${row.usage}: ${row.help}`).toSorted()
      )
      assert.deepStrictEqual(
        menuOf(admin).map(({ command }) => command),
        [...new Set(given.map(({ words }) => words.split(" ")[0] ?? ""))]
      )
      for (const { usage, words } of chatCommands) {
        const read = readCommand(`/${words} ${ARGUMENTS[usage] ?? ""}`, admin)
        if (words === "help") assert.strictEqual(read?.type, "say")
        else if (!mayGive(words, admin)) assert.deepStrictEqual(read, { type: "forbidden", words })
        else if (words === "start") assert.strictEqual(read?.type, "command")
        else assert.deepInclude(read, { type: "command", words }, words)
      }
    })

  it("has names that Telegram takes, and descriptions that fit its menu (E6)", () => {
    for (const { command, description } of menuOf(true)) {
      assert.match(command, /^[a-z0-9_]{1,32}$/u)
      assert.isTrue(description.length >= 3 && description.length <= 256, description)
    }
  })

  it("names in the menu the words that follow a first one which alone does nothing", () => {
    const agent = menuOf(true).find(({ command }) => command === "agent")
    assert.strictEqual(agent?.description, "Followed by one of: list, build")
  })

  it("has every regular command that people know", () => {
    const regular = chatCommands.flatMap(({ words }) => (mayGive(words, false) ? [words] : []))
    const known = ["status", "stop", "restart", "cores", "cancel", "compact", "events", "model", "model llm", "voice"]
    const more = ["inject", "approvals", "approve", "reject", "grants", "grants revoke", "help"]
    assert.includeMembers<string>(regular, [...known, ...more])
  })

  it("gives an admin everything that a regular person has", () => {
    for (const { words } of chatCommands) assert.isTrue(mayGive(words, true), words)
    const admins = chatCommands.flatMap(({ words }) => (mayGive(words, false) ? [] : [words]))
    assert.deepStrictEqual(admins, [
      "trust",
      "start",
      "update",
      "update_all",
      "agent list",
      "agent build",
      "config load",
      "config diff",
      "config apply",
      "workspace list",
      "workspace reset",
      "secret list"
    ])
  })

  it("is where choirctl has its words for steering from", () => {
    const verbs = session.subcommands.flatMap(({ commands }) =>
      commands.map(({ name, description }) => ({ name, description }))
    )
    for (const words of ["stop", "cancel", "compact", "inject", "answer"] as const) {
      const { help, verb } = steeringWords(words)
      assert.isTrue(
        verbs.some(({ description, name }) => name === verb && description === help),
        words
      )
    }
  })
})
