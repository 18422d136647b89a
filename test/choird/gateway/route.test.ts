import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { chatCommands, HELP_TOPICS } from "#schema/ChatCommand.ts"
import { Config } from "#schema/Config.ts"
import { AgentId, JobName, ResourceName } from "#schema/Ids.ts"
import type { AgentStatus } from "#schema/AgentSummary.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { readCommand } from "#src/choird/chatcommands/readCommand.ts"
import { route } from "#src/choird/gateway/route.ts"
import { agentView } from "../../support/agentView.ts"
import { BINDINGS, CONFIG, DESK, PHONE } from "../../support/stores.ts"

const helper = { repo: { url: "/srv/helper" }, defaults: { workspace: "main", llm: "small", dm: "phone" } }
const config = Schema.decodeUnknownSync(Config)({ ...CONFIG, agents: { helper } })
const BOT = ResourceName.make("bot")
const view = (status: AgentStatus, id = "helper"): AgentView =>
  agentView(AgentId.make(id), {
    status,
    bindings: status === "stopped" || status === "crashed" ? null : { ...BINDINGS, dm: PHONE }
  })
const from = (user_id: string, text: string | undefined, views: ReadonlyArray<AgentView> = [view("running")]) =>
  route(config, views, BOT, { user_id, text })
/** Lines of a phone's screen, on which most lines of help need two. */
const HELP_LINES_MAX = 20
const said = (routed: ReturnType<typeof route>) => ("text" in routed ? routed.text : routed.type)

describe("route", () => {
  it("takes a text of a configured person to the agent at the DM, as it is", () => {
    for (const status of ["running", "starting"] as const) {
      const to = { type: "message", dm: PHONE, agent_id: "helper", text: " hi\n/status " }
      assert.deepStrictEqual<unknown>(from("1", " hi\n/status ", [view("stopped", "other"), view(status)]), to)
    }
  })

  it("takes a reply to a job's question to that job, and every other reply to the agent", () => {
    const dig = "Which branch?\n\ndig waits for your answer: /answer dig …"
    const reply = (asked: string, text = "main", more: object = {}) =>
      route(config, [view("running")], BOT, {
        user_id: "1",
        text,
        quoted: { by: { kind: "own" }, text: asked },
        ...more
      })
    const answer = { type: "answer", content: "main", job_name: JobName.make("dig") } as const
    assert.deepInclude(reply(dig), { type: "command", command: answer })
    assert.deepInclude(reply(`${dig}\n`), { type: "command", command: answer })
    for (const other of [
      "Which branch?",
      `${dig}\nand more`,
      "dig waits for your answer: /answer sow …",
      "Dig It is waiting for your answer: /answer Dig It …",
      `${"x".repeat(41)} waits for your answer: /answer ${"x".repeat(41)} …`
    ])
      assert.strictEqual(reply(other).type, "message", other)
    assert.deepInclude(reply(dig, "/status"), { type: "command", command: { type: "status" } })
    assert.strictEqual(reply(dig, "main", { forwarded: true }).type, "message")
  })

  it("drops strangers, and a known person at another gateway is one", () => {
    assert.strictEqual(from("2", "hi").type, "stranger")
    assert.strictEqual(from("local", "hi").type, "stranger")
    assert.strictEqual(from("constructor", "/status").type, "stranger")
    assert.strictEqual(from("2", undefined).type, "stranger")
  })

  it("takes a text of each of an agent's DMs to it, and answers for it at each of them while it is away", () => {
    const both = Schema.decodeUnknownSync(Config)({
      ...CONFIG,
      agents: { helper: { ...helper, defaults: { ...helper.defaults, dm: ["desk", "phone"] } } }
    })
    const bound = { ...view("running"), bindings: { ...BINDINGS, dms: [BINDINGS.dm, PHONE] } }
    const places = [
      ["bot", "1", "phone"],
      ["terminal", "local", "desk"]
    ] as const
    for (const [gateway, user_id, dm] of places) {
      const ask = (views: ReadonlyArray<AgentView>) =>
        route(both, views, ResourceName.make(gateway), { user_id, text: "hi" })
      assert.deepInclude<object>(ask([view("stopped", "other"), bound]), { type: "message", dm, agent_id: "helper" })
      const start = gateway === "bot" ? /An admin can start it: \/start helper$/u : /choirctl agent start helper$/u
      const away = ask([])
      assert.match((away.type === "message" && away.kept) || "", start)
    }
  })

  it("keeps a message for an agent that will take it, and says whom to start", () => {
    for (const views of [
      [],
      [view("stopped")],
      [view("crashed")],
      [view("stopping")],
      [view("running", "other")].slice(1)
    ]) {
      const routed = from("1", "hi", views)
      assert.deepInclude<object>(routed, { type: "message", dm: PHONE, agent_id: "helper", text: "hi" })
      assert.match(
        (routed.type === "message" && routed.kept) || "",
        /^helper is not running .*start it: \/start helper$/u
      )
      assert.match(
        said(from("1", "/status", views)),
        /not running at the moment\. \/status was not carried out\. .* start it: \/start helper$/u
      )
    }
    const paused = from("1", "hi", [view("paused")])
    assert.match((paused.type === "message" && paused.kept) || "", /^helper is paused/u)
    assert.strictEqual(from("1", "/status", [view("paused")]).type, "command")
  })

  it("refuses a message that no agent would take: none is there, or the one of the DM runs in other chats", () => {
    const nobody = Schema.decodeUnknownSync(Config)({ ...CONFIG, agents: {} })
    const routed = route(nobody, [], BOT, { user_id: "1", text: "hi" })
    assert.strictEqual(
      said(routed),
      "No agent is running here. Your message was not delivered. There is no agent yet. To add one on the host: choirctl agent init <name>"
    )
    const desk = { ...helper, defaults: { ...helper.defaults, dm: "desk" } }
    const others = (agents: object) =>
      said(route(Schema.decodeUnknownSync(Config)({ ...CONFIG, agents }), [], BOT, { user_id: "1", text: "hi" }))
    assert.match(others({ helper: desk }), / To start one on the host: choirctl agent start helper --dm phone$/u)
    assert.match(
      others({ helper: desk, second: desk }),
      / choirctl agent start <agent> --dm phone \(helper or second\)$/u
    )
    const elsewhere = { ...view("running"), bindings: BINDINGS }
    assert.deepInclude<object>(from("1", "hi", [elsewhere]), { type: "refuse", kind: "NO_AGENT" })
  })

  it("reads commands, and answers those that nobody knows and those that are used wrongly (E6)", () => {
    const command = (text: string) => {
      const routed = from("1", text)
      return routed.type === "command" ? routed.command : routed
    }
    for (const text of ["/status", "/STATUS", "/status@double_bot", "/status now"])
      assert.deepStrictEqual(command(text), { type: "status" }, text)
    assert.deepStrictEqual(command("/cores"), { type: "cores" })
    assert.deepStrictEqual(command("/stop"), { type: "stop" })
    assert.deepStrictEqual(command("/cancel"), { type: "cancel", job_name: undefined })
    assert.deepStrictEqual(command("/cancel tidy"), { type: "cancel", job_name: JobName.make("tidy") })
    assert.deepStrictEqual(command("/compact"), { type: "compact" })
    assert.deepStrictEqual(command("/inject \n a\n/b "), { type: "inject", content: "a\n/b" })
    assert.deepStrictEqual(command("/answer dig the\nmain one"), { type: "answer", content: "dig the\nmain one" })
    assert.deepStrictEqual(command("/model"), { type: "model" })
    const large = { type: "set model", llm: ResourceName.make("large") } as const
    assert.deepStrictEqual(command("/model llm  large"), { ...large, keep: false })
    assert.deepStrictEqual(command("/model large"), { ...large, keep: false })
    for (const text of ["/model llm large default", "/model llm large --default", "/model large default"])
      assert.deepStrictEqual(command(text), { ...large, keep: true })
    assert.match(said(from("1", "/start")), /^Hello!/u)
    for (const text of ["/help", "/HELP@double_bot"])
      assert.match(
        said(from("1", text)),
        /^Every day:\n\/status: .*\n\n\/help work: Jobs and the conversation\n/su,
        text
      )
    assert.match(said(from("1", "/help me")), /^There is no topic me\.\nEvery day:\n/u)
    assert.match(said(from("1", "/help work")), /^Jobs and the conversation:\n.*\n\/inject <message>: /su)
    // A topic of which a person may give no command is none for them.
    assert.notMatch(said(from("1", "/help agents")), /update_all|Agents and/u)
    const screens = Object.keys(HELP_TOPICS).map((topic) => {
      const read = readCommand(`/help ${topic}`, true)
      return read?.type === "say" ? read.text : assert.fail(topic)
    })
    for (const screen of screens) assert.isAtMost(screen.split("\n").length, HELP_LINES_MAX, screen)
    for (const { words } of chatCommands) assert.include(screens.join("\n"), `\n/${words}`)
    // Of an agent with several people, what only its admin may see is none of the others' commands.
    const shared = { ...view("running"), bindings: { ...BINDINGS, dm: PHONE, dms: [PHONE, DESK] } }
    const own = ["day", "work"].map((topic) => said(from("1", `/help ${topic}`))).join("\n")
    const ofMany = ["day", "work"].map((topic) => said(from("1", `/help ${topic}`, [shared]))).join("\n")
    for (const word of ["memory", "forget", "events", "context"]) {
      assert.include(own, `\n/${word}`)
      assert.notInclude(ofMany, `\n/${word}`)
    }
    assert.include(ofMany, "\n/status")
    for (const text of ["/start helper", "/update_all", "/secret list", "/agent  build helper", "/stop other"])
      assert.match(said(from("1", text)), /^Only an admin may /u, text)
    assert.deepStrictEqual<unknown>(command("/stop helper"), { type: "stop agent", agent_id: "helper" })
    assert.deepStrictEqual(command("/restart"), { type: "restart agent" })
    assert.deepStrictEqual(command("/events 3"), { type: "events", count: 3 })
    assert.deepStrictEqual(command("/events"), { type: "events", count: 10 })
    assert.deepStrictEqual(command("/model llm"), { type: "choose", words: "model llm", from: "model" })
    for (const text of [`/${"x".repeat(32)}`, "/constructor"])
      assert.strictEqual(said(from("1", text)), `Unknown command ${text}. /help lists the commands.`)
    for (const [typed, meant] of [
      ["/sttus", "/status"],
      ["/Approvel 7", "/approve"]
    ])
      assert.strictEqual(
        said(from("1", typed ?? "")),
        `Unknown command ${typed?.toLowerCase().replace(" 7", "")}. Did you mean ${meant}? /help lists the commands.`
      )
    // What a person may not give is not suggested to them.
    assert.strictEqual(said(from("1", "/confg")), "Unknown command /confg. /help lists the commands.")
    assert.match(said(from("1", "/stop nosuch")), /private chat\. To end a job: \/cancel nosuch; \/cores lists /u)
    assert.include(said(from("1", "/start")), "\n/reject [number] [reason]: ")
    const decided = { type: "decide", resolution: "approved", approval_id: undefined, reason: null } as const
    assert.deepStrictEqual<unknown>(command("/approve"), decided)
    for (const text of ["/approve 7", "/APPROVE@double_bot #7", "/approve 7."])
      assert.deepStrictEqual<unknown>(command(text), { ...decided, approval_id: "7" }, text)
    const rejected = { ...decided, resolution: "rejected" } as const
    assert.deepStrictEqual<unknown>(command("/reject"), rejected)
    assert.deepStrictEqual<unknown>(command("/reject 12"), { ...rejected, approval_id: "12" })
    for (const text of ["/reject 12 wrong\naccount", "/reject #12: wrong\naccount"])
      assert.deepStrictEqual<unknown>(command(text), { ...rejected, approval_id: "12", reason: "wrong\naccount" }, text)
    for (const reason of ["not now", "3rd time", "0", "99999999999999999999"])
      assert.deepStrictEqual<unknown>(command(`/reject ${reason}`), { ...rejected, reason }, reason)
    for (const [text, usage] of [
      ["/approve yes", "/approve [number]"],
      ["/approve 7 please", "/approve [number]"],
      ["/approve -7", "/approve [number]"],
      ["/approve 99999999999999999999", "/approve [number]"],
      ["/inject", "/inject <message>"],
      ["/inject  \n", "/inject <message>"],
      ["/answer", "/answer [job] <answer>"],
      ["/cancel Two Words", "/cancel [job], or /cancel plan <number>"],
      ["/cancel ../x", "/cancel [job], or /cancel plan <number>"],
      ["/stop two words", "/stop [agent]"],
      ["/events all", "/events [count]"],
      ["/events 0", "/events [count]"],
      ["/model is slow", "/model, or /model llm <name> [default]"],
      ["/model llm a b", "/model, or /model llm <name> [default]"]
    ] as const)
      assert.strictEqual(said(from("1", text)), `Usage: ${usage}`, text)
    for (const text of ["/", "/ status", "/home-office", "//x", "see /status", `/${"x".repeat(33)}`, "/etc/passwd?"])
      assert.strictEqual(from("1", text).type, "message", text)
  })

  it("refuses what is not text, and a text of absurd length", () => {
    assert.match(said(from("1", undefined)), /only read text/u)
    assert.match(said(from("1", "x".repeat(100_001))), /too long/u)
  })
})
