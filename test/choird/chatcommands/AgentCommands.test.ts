import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import type { ConfigChange } from "#schema/ConfigApi.ts"
import { AgentId, EDGE, JobName, ResourceName } from "#schema/Ids.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { AgentCommands } from "#src/choird/chatcommands/AgentCommands.ts"
import { Choices } from "#src/choird/chatcommands/Choices.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { readCommand } from "#src/choird/chatcommands/readCommand.ts"
import { Images } from "#src/choird/images/Images.ts"
import type { AuditEntry } from "#src/choird/logs/Audit.ts"
import { Contexts, NoContext } from "#src/choird/queues/Contexts.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { ConfigurationRefused } from "#src/choird/reconfiguration/ConfigurationRefused.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { RESTART_CHOIRD } from "#src/choird/reconfiguration/reloadClasses.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { SteeringRefused } from "#src/choird/sessions/Order.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { agentView } from "../../support/agentView.ts"
import { memoryAudit } from "../../support/audited.ts"
import { promptContext } from "../../support/promptContext.ts"
import { CONFIG, PHONE } from "../../support/stores.ts"
import { BOT, noAgentCommands, quiet, SESSION } from "../../support/telegramBot.ts"
import { makeJournal } from "../../support/testing/Journal.ts"

const OWN = AgentId.make("own")
const agent = (dm: unknown) => ({ repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small", dm } })
const config = Schema.decodeUnknownSync(Config)({
  ...CONFIG,
  agents: { own: agent(["desk", "phone"]), other: agent("desk") }
})

const LONG = {
  ...promptContext,
  parts: promptContext.parts.map((part) => (part.kind === "tools" ? { ...part, tokens: 2150 } : part))
}

/** Commands of an admin at the phone, over agents that note what is done to them. */
const setUp = Effect.gen(function* () {
  const done: Array<unknown> = []
  const jobs: Array<string> = []
  const held: Array<string> = []
  const pending: Array<ConfigChange> = []
  const told = makeJournal<string>()
  const audited: Array<AuditEntry> = []
  const view = (agent_id: AgentId) =>
    agentView(agent_id, { status: agent_id === OWN ? "running" : "stopped", session_id: SESSION })
  const note = (what: string) => (agent_id: AgentId, options?: unknown) =>
    Effect.suspend(() => {
      done.push(options === undefined ? [what, agent_id] : [what, agent_id, options])
      return agent_id === "gone"
        ? Effect.fail(
            new AgentRefused({ kind: "UNKNOWN_AGENT", agent_id, reason: "there is no agent gone", hint: "known: own" })
          )
        : Effect.succeed(view(agent_id))
    })
  const services = Layer.mergeAll(
    noAgentCommands,
    quiet,
    memoryAudit(audited),
    Layer.mock(ConfigStore, {
      home: "/h",
      current: Effect.succeed({ version: 1, config }),
      secrets: Effect.succeed({ "bot-token": Redacted.make("hidden"), "a-key": Redacted.make("hidden") })
    }),
    Layer.mock(Lifecycle, {
      list: Effect.sync(() => [view(OWN), view(AgentId.make("other"))]),
      view: (agent_id) => Effect.sync(() => view(agent_id)),
      startInChat: (agent_id, dm, named) => note(`start in ${dm}`)(agent_id, named),
      stop: note("stop"),
      restart: (agent_id) =>
        held.length === 0
          ? note("restart")(agent_id)
          : Effect.fail(
              new AgentRefused({ kind: "NOT_READY", agent_id, reason: `${agent_id} waits`, hint: held.join() })
            )
    }),
    Layer.mock(WorkspaceLabels, { drop: () => Effect.void }),
    Layer.mock(Leases, {
      all: Effect.succeed([{ kind: "workspace", name: ResourceName.make("main"), agent_id: OWN }] as never)
    }),
    Layer.mock(Images, {
      build: () => Effect.succeed({ image_version: "abc1234" as never, path: "/i", built: true, warnings: [] })
    }),
    Layer.mock(Reconfiguration, {
      load: () =>
        Effect.fail(
          new ConfigurationRefused({
            kind: "CONFIG",
            reason: "config.json cannot be used",
            hint: "",
            problems: [{ path: "models", reason: "is missing" }]
          })
        ),
      diff: Effect.succeed([{ path: "budgets.x", change: "changed", class: "hot-reload" as const, command: "c" }]),
      apply: () => Effect.succeed({ version: 3, previous: 2, applied: [], pending })
    }),
    Layer.mock(Outbox, { tell: ({ source_id, text }) => Effect.sync(() => told.record(`${source_id}: ${text}`)) }),
    Layer.mock(Approvals, { list: () => Effect.succeed([]) }),
    Layer.mock(EventStore, {
      state: () =>
        Effect.succeed({
          ...initialState,
          cores: new Map(jobs.map((job_name) => [JobName.make(job_name), {} as never]))
        })
    }),
    Layer.mock(Contexts, {
      ask: (_, lane) => (lane === EDGE ? Effect.succeed(LONG) : new NoContext({ kind: "NO_PROMPT", lane }))
    }),
    Layer.mock(Models, {
      set: (agent_id, _, { llm }) =>
        llm === "small"
          ? new AgentRefused({
              kind: "NOT_READY",
              agent_id,
              reason: 'the secret "small-key" has no value',
              hint: "choirctl secret set small-key && choirctl secret apply"
            })
          : Effect.succeed({} as never)
    }),
    Layer.mock(ConfigWriter, {
      apply: (who, edits) => Effect.sync(() => told.record(`${who} writes ${JSON.stringify(edits)}`))
    }),
    Layer.mock(Steering, {
      order: () => Effect.fail(new SteeringRefused({ kind: "NOTHING_RUNS", reason: "no turn is running", hint: "" }))
    }),
    Layer.mock(Plans, { about: () => Effect.undefined }),
    Layer.mock(Schedules, {})
  )
  const context = yield* Layer.build(
    GatewayCommands.layer.pipe(Layer.provideMerge(AgentCommands.layer), Layer.provideMerge(services))
  )
  const say = Effect.fnUntraced(function* (text: string, admin = true) {
    const read = readCommand(text, admin)
    if (read?.type !== "command") return yield* Effect.die(new Error(`${text} is no command`))
    const speaker = { agent_id: OWN, gateway: BOT, dm: PHONE, writer: PHONE, request_id: text, admin }
    const commands = yield* GatewayCommands
    return (yield* commands.run(read.command, speaker)).text
  }, Effect.provideContext(context))
  const pick = (text: string) =>
    Effect.flatMap(Choices, (choices) => choices.take({ gateway: BOT, dm: PHONE }, text)).pipe(
      Effect.provideContext(context)
    )
  return { audited, done, held, jobs, pending, pick, say, told: told.journal }
})

describe("an admin's commands", () => {
  it.effect("start an agent for the person of this chat, and say when it runs", () =>
    Effect.gen(function* () {
      const { audited, done, say, told } = yield* setUp
      // One that runs is refused at once, without a word that it starts.
      assert.strictEqual(yield* say("/start own llm=large"), "own is running.")
      assert.strictEqual(yield* say("/start other"), "Starting other.")
      assert.strictEqual(yield* told.at(0), "bot:/start other/done: other is running.")
      assert.deepStrictEqual(done, [
        ["start in phone", "own", { llm: "large" }],
        ["start in phone", "other", {}]
      ])
      assert.deepInclude(audited[0], { who: "gateway:bot/phone", action: "agent.start", agent_id: OWN })
    }).pipe(Effect.scoped)
  )

  it.effect("stop, restart, build and update this chat's agent or the named one", () =>
    Effect.gen(function* () {
      const { done, say, told } = yield* setUp
      for (const [index, text] of ["/stop other", "/restart", "/agent build own", "/update other"].entries()) {
        yield* say(text)
        yield* told.at(index)
      }
      assert.deepStrictEqual(done.slice(0, 2), [
        ["stop", "other"],
        ["restart", "own"]
      ])
      assert.match(yield* told.at(2), /: own has the new image abc1234\.$/u)
      assert.match(yield* told.at(3), /: other has the new image abc1234 and is not running\.$/u)
      yield* say("/update_all")
      assert.match(yield* told.at(4), /1 of 2: own runs on abc1234\.$|1 of 2: own failed: /u)
      assert.match(yield* told.at(5), /2 of 2: other has the new image/u)
      assert.match(yield* told.at(6), /All agents are updated\.$/u)
    }).pipe(Effect.scoped)
  )

  it.effect("advise the command of the chat where it has the one that a hint names for the host", () =>
    Effect.gen(function* () {
      const { held, say, told } = yield* setUp
      const advice = [
        ["choirctl agent restart own", "Send /restart own."],
        ["choirctl agent build own", "Send /agent build own."],
        ["choirctl agent start own --fresh", "On the host: choirctl agent start own --fresh"]
      ] as const
      for (const [index, [hint, shown]] of advice.entries()) {
        held.splice(0, 1, hint)
        yield* say("/restart")
        assert.strictEqual(yield* told.at(index), `bot:/restart/done: own waits. ${shown}`)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("make a model the default of the agent at this chat", () =>
    Effect.gen(function* () {
      const { audited, say, told } = yield* setUp
      assert.strictEqual(
        yield* say("/model llm large"),
        "Switched to large, from the next step until the agent is started again."
      )
      assert.strictEqual(yield* say("/model llm large default"), "Making large the default.")
      const edits = [{ path: ["agents", "own", "defaults", "llm"], value: "large" }]
      assert.strictEqual(yield* told.at(0), `gateway:bot/phone writes ${JSON.stringify(edits)}`)
      assert.match(yield* told.at(1), /large is the default model of own from now on\.$/u)
      assert.deepInclude(audited.at(-1), {
        who: "gateway:bot/phone",
        action: "model.default",
        detail: { llm: "large" }
      })
      assert.match(yield* say("/model llm large default", false), /^Only an admin can change the default model/u)
    }).pipe(Effect.scoped)
  )

  it.effect("name a command of the host as it is typed, where a model cannot be used", () =>
    Effect.gen(function* () {
      const { say } = yield* setUp
      assert.strictEqual(
        yield* say("/model llm small"),
        'The secret "small-key" has no value. On the host: choirctl secret set small-key && choirctl secret apply'
      )
    }).pipe(Effect.scoped)
  )

  it.effect("say which agents and jobs there are when the named one is unknown", () =>
    Effect.gen(function* () {
      const { done, jobs, say } = yield* setUp
      assert.strictEqual(yield* say("/stop nosuch"), "There is no agent nosuch. Agents: other, own.")
      jobs.push("dig", "fill")
      const agents = "Agents: other, own.\nJobs: dig, fill. To end one: /cancel"
      assert.strictEqual(yield* say("/stop nosuch"), `There is no agent nosuch. ${agents} dig`)
      assert.strictEqual(yield* say("/stop fill"), `There is no agent fill. ${agents} fill`)
      assert.deepStrictEqual(done, [])
    }).pipe(Effect.scoped)
  )

  it.effect("say which jobs go on when only jobs are running", () =>
    Effect.gen(function* () {
      const { jobs, say } = yield* setUp
      assert.strictEqual(yield* say("/stop"), "Nothing is running.")
      jobs.push("dig", "fill")
      assert.strictEqual(yield* say("/stop"), "Only jobs are running: dig, fill. To end one: /cancel dig")
    }).pipe(Effect.scoped)
  )

  it.effect("are refused at once, and audited, where the named agent or workspace is unknown", () =>
    Effect.gen(function* () {
      const { audited, done, say } = yield* setUp
      for (const text of ["/start gone", "/restart gone", "/update gone", "/agent build gone"])
        assert.strictEqual(yield* say(text), "There is no agent gone. Agents: other, own.", text)
      for (const text of ["/workspace reset gone", "/workspace reset gone yes"])
        assert.strictEqual(yield* say(text), "There is no workspace gone. Workspaces: main.", text)
      assert.deepStrictEqual(done, [])
      assert.deepStrictEqual(
        audited.map(({ action, detail }) => [action, detail]),
        [
          ...["start", "restart", "update", "build"].map((verb) => [`agent.${verb}`, { refused: "UNKNOWN_AGENT" }]),
          ["workspace.reset", { refused: "UNKNOWN_WORKSPACE" }],
          ["workspace.reset", { refused: "UNKNOWN_WORKSPACE" }]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("list agents, workspaces and the names of secrets, and nothing of their values", () =>
    Effect.gen(function* () {
      const { say } = yield* setUp
      assert.strictEqual(yield* say("/agent list"), "own: running\nother: stopped")
      assert.strictEqual(yield* say("/workspace list"), "main: held by own")
      assert.strictEqual(yield* say("/secret list"), "a-key\nbot-token")
      assert.strictEqual(yield* say("/approvals"), "Nothing is waiting for your approval.")
    }).pipe(Effect.scoped)
  )

  it.effect("load, show and apply the configuration, with each problem in its place", () =>
    Effect.gen(function* () {
      const { say, told } = yield* setUp
      yield* say("/config load")
      assert.match(yield* told.at(0), /: config\.json cannot be used\.\nmodels: is missing$/u)
      assert.strictEqual(yield* say("/config diff"), "budgets.x: changed")
      yield* say("/config apply")
      assert.match(yield* told.at(1), /Version 3 is running\. Changes applied: 0; waiting for a restart: 0\.$/u)
    }).pipe(Effect.scoped)
  )

  it.effect("say what has to restart for a change", () =>
    Effect.gen(function* () {
      const { pending, say, told } = yield* setUp
      const waits = { change: "changed", class: "restart-required" } as const
      pending.push(
        { ...waits, path: "timezone", command: RESTART_CHOIRD },
        { ...waits, path: "agents.own.web", command: "choirctl agent restart own" },
        { ...waits, path: "agents.own.repo", command: "git push && choirctl agent build own" }
      )
      yield* say("/config apply")
      assert.match(
        yield* told.at(0),
        /\ntimezone: changed, at a restart of choird\nagents\.own\.web: changed, by \/restart own\nagents\.own\.repo: changed, at a restart$/u
      )
    }).pipe(Effect.scoped)
  )

  it.effect("ask before a workspace is emptied, and offer numbers where an argument is missing", () =>
    Effect.gen(function* () {
      const { pick, say } = yield* setUp
      assert.match(
        yield* say("/workspace reset main"),
        /would be deleted\. Send \/workspace reset main yes to do it\.$/u
      )
      assert.strictEqual(yield* say("/agent build"), "Which agent?\n1. own\n2. other\nSend the number.")
      assert.strictEqual(yield* pick("2"), "/agent build other")
      assert.isUndefined(yield* pick("2"))
      yield* say("/model llm")
      assert.isUndefined(yield* pick("hello"))
      assert.isUndefined(yield* pick("1"))
    }).pipe(Effect.scoped)
  )
})

describe("a person's question what the model reads", () => {
  it.effect("is answered by the size of edge's last prompt, and the tokens of each kind of part", () =>
    Effect.gen(function* () {
      const { say } = yield* setUp
      assert.strictEqual(
        yield* say("/context"),
        [
          "The last prompt to large has 250 of 1,000 tokens (25 %):",
          "tools: 2,150",
          "instructions: 60",
          "the user's messages: 40"
        ].join("\n")
      )
    }).pipe(Effect.scoped)
  )
})
