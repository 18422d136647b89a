import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { appliedConfig } from "#src/choird/reconfiguration/nextConfig.ts"
import { APPLY, configChanges, REACH } from "#src/choird/reconfiguration/reloadClasses.ts"
import type { AgentUse } from "#src/choird/reconfiguration/resourcesInUse.ts"
import { example, withAt } from "../../support/invalidConfigs.ts"

const decode = Schema.decodeUnknownSync(Config, { onExcessProperty: "error" })
const GONE = Symbol("deleted")

/** The example configuration with some places changed; GONE takes a place away. */
const configWith = (...places: ReadonlyArray<readonly [path: string, value: unknown]>): Config => {
  const without = (value: unknown, [key = "", ...rest]: ReadonlyArray<string>): unknown =>
    Object.fromEntries(
      Object.entries(value as object).flatMap(([name, inner]) =>
        name !== key ? [[name, inner]] : rest.length === 0 ? [] : [[name, without(inner, rest)]]
      )
    )
  return decode(
    places.reduce<unknown>(
      (config, [path, value]) =>
        value === GONE ? without(config, path.split(".")) : withAt(config, path.split("."), value),
      example
    )
  )
}

const running = configWith()
const AGENT = AgentId.make("agent-1")
const name = ResourceName.make
const bindings = {
  workspace: name("main-ws"),
  llm: name("sonnet"),
  core_llm: name("sonnet"),
  dm: name("admin-dm"),
  email: name("primary-email"),
  voice_profile: name("default-en")
}
const use: AgentUse = { agent_id: AGENT, bindings, started_with: running }
/** A build reads the configuration that runs. */
const BUILD = "choirctl config apply && choirctl agent build agent-1"
const LET_GO = "choirctl agent stop agent-1 && choirctl config apply && choirctl agent start agent-1"
const RESTART = "choirctl agent restart agent-1"
const RESTART_CHOIRD = "choirctl daemon stop && choirctl daemon start"
const second = { repo: { url: "/r" }, defaults: { workspace: "scratch", llm: "o3" } }

/** What is changed, and what the change asks for: while the agent runs, and while nobody does. */
type Row = readonly [path: string, value: unknown, change: string, up: string, down?: string]
const ROWS: ReadonlyArray<Row> = [
  ["models.sonnet.temperature", 0.1, "changed", APPLY],
  ["models.sonnet.price", { input: 1, output: 2 }, "added", APPLY],
  ["models.sonnet.request_template.top_p", 0.5, "added", APPLY],
  ["models.gpt4o", GONE, "removed", APPLY],
  ["tts.eleven.model_id", "other", "changed", APPLY],
  ["voice_profiles.narrator.voice_id", "v", "changed", APPLY],
  ["stt.ears.model_id", "other", "changed", APPLY],
  ["git_identities.dev-identity.email", "e@x", "changed", APPLY],
  ["notion_integrations.work-wiki.secret", "other", "changed", APPLY],
  ["search.brave.secret", "other", "changed", APPLY],
  ["gateways.bot-work.secret", "other", "changed", APPLY],
  ["dms.user-dm.user_id", "5", "changed", APPLY],
  ["budgets.max_core_jobs", 2, "changed", APPLY],
  ["memory.event_window", 9, "changed", APPLY],
  ["jobs.progress_interval_ms", null, "changed", APPLY],
  ["approvals.confirm_external", "always", "changed", APPLY],
  ["skills.rehearsal.runs", 2, "changed", APPLY],
  ["heartbeat_interval_ms", 900, "changed", APPLY],
  ["crash_detection_threshold_ms", 20_000, "changed", APPLY],
  ["rate_limit_retry_ms", 900, "changed", APPLY],
  ["log_archive_threshold_lines", 9, "changed", APPLY],
  ["retention.messages_days", 9, "changed", APPLY],
  ["$schema", "s", "added", APPLY],
  ["postgres.port", 1, "changed", RESTART_CHOIRD, RESTART_CHOIRD],
  ["runtime.cpus", 1, "changed", RESTART_CHOIRD, RESTART_CHOIRD],
  ["transport.http", { listen: "127.0.0.1:1" }, "added", RESTART_CHOIRD, RESTART_CHOIRD],
  ["telemetry.prometheus", { listen: "127.0.0.1:9464" }, "added", RESTART_CHOIRD, RESTART_CHOIRD],
  ["tls.ca_file", "/etc/ca.pem", "added", RESTART_CHOIRD, RESTART_CHOIRD],
  ["timezone", "Europe/Berlin", "added", RESTART_CHOIRD, RESTART_CHOIRD],
  ["embedding.dimensions", 3, "changed", RESTART_CHOIRD, RESTART_CHOIRD],
  ["global_repo.ref", "x", "changed", `${BUILD} && ${RESTART}`, BUILD],
  ["agents.agent-1.repo.ref", "x", "changed", `${BUILD} && ${RESTART}`, BUILD],
  ["agents.agent-1.defaults.llm", "o3", "changed", RESTART, APPLY],
  // The same DM, written as a list of one.
  ["agents.agent-1.defaults.dm", ["admin-dm"], "changed", APPLY],
  ["agents.agent-1", GONE, "removed", "choirctl agent stop agent-1 && choirctl config apply", APPLY],
  ["agents.agent-2", second, "added", APPLY],
  ["workspaces.main-ws.path", "/elsewhere", "changed", RESTART, APPLY],
  ["workspaces.scratch.path", "/elsewhere", "changed", APPLY],
  ["email_accounts.primary-email.sharing", "shared", "changed", RESTART, APPLY],
  ["email_accounts.primary-email.imap_port", 1, "changed", APPLY]
]

describe("the classes of changes", () => {
  it("have a row for every key of config.json, and a test for every row", () => {
    const { properties } = Schema.toJsonSchemaDocument(Config).schema as { properties: object }
    const keys = Object.keys(properties).sort()
    assert.deepStrictEqual(Object.keys(REACH).sort(), keys)
    assert.sameMembers([...new Set(ROWS.map(([path]) => path.split(".")[0]))], keys)
  })

  it.each(ROWS)("of %s = %o follow from who runs", (...row) => {
    const [path, value, change, up, down = APPLY] = row as unknown as Row
    const target = configWith([path, value])
    const kind = (command: string) => (command === APPLY ? "hot-reload" : "restart-required")
    for (const [uses, command] of [
      [[use], up],
      [[], down]
    ] as const)
      assert.deepStrictEqual(
        configChanges(running, target, uses).map(({ change, command, path, ...row }) => ({
          path,
          change,
          class: row.class,
          command
        })),
        [{ path, change, class: kind(command), command }]
      )
  })

  it("name what a running agent holds on to as removed only after it stopped", () => {
    const target = configWith(
      ["agents.agent-1.defaults.llm", "o3"],
      ["models.sonnet", GONE],
      ["agents.agent-1.defaults.dm", "user-dm"],
      ["dms.admin-dm", GONE]
    )
    const commands = Object.fromEntries(
      configChanges(running, target, [use]).map(({ command, path }) => [path, command])
    )
    assert.deepStrictEqual(commands, {
      "agents.agent-1.defaults.dm": RESTART,
      "agents.agent-1.defaults.llm": RESTART,
      "dms.admin-dm": LET_GO,
      "models.sonnet": LET_GO
    })
  })

  it("stay in the list until the agent is started with them, though choird has taken them over", () => {
    const now = configWith(["agents.agent-1.defaults.llm", "o3"], ["workspaces.main-ws.path", "/elsewhere"])
    assert.deepStrictEqual(
      configChanges(now, now, [use]).map(({ command, path }) => [path, command]),
      [
        ["agents.agent-1.defaults.llm", RESTART],
        ["workspaces.main-ws.path", RESTART]
      ]
    )
    assert.deepStrictEqual(configChanges(now, now, [{ ...use, started_with: now }]), [])
    // What was changed and changed back concerns nobody.
    assert.deepStrictEqual(
      configChanges(now, running, [use]).map((row) => row.class),
      ["hot-reload", "hot-reload"]
    )
  })

  it("are one command where many agents need it", () => {
    const more = ["agent-2", "agent-3", "agent-4"].map((id) => [`agents.${id}`, second] as const)
    const [row] = configChanges(configWith(...more), configWith(...more, ["global_repo.ref", "x"]), [use])
    assert.strictEqual(row?.command, "choirctl config apply && choirctl agent build <agent-id>")
  })
})

describe("the applied configuration", () => {
  it("is the staged one when nobody runs, but for what choird reads at its start", () => {
    const target = configWith(
      ["models.gpt4o", GONE],
      ["runtime.cpus", 1],
      ["embedding", GONE],
      ["telemetry.prometheus", { listen: "127.0.0.1:9464" }]
    )
    const applied = Result.getOrThrow(appliedConfig(running, target, []))
    assert.notProperty(applied.models, "gpt4o")
    assert.deepStrictEqual(applied.runtime, running.runtime)
    assert.deepStrictEqual(applied.embedding, running.embedding)
    assert.deepStrictEqual(
      configChanges(applied, target, []).map(({ path }) => path),
      ["embedding", "runtime.cpus", "telemetry.prometheus"]
    )
  })

  it("keeps what running agents are bound to and all that it leads to, and the agents themselves", () => {
    const target = decode({ global_repo: { url: "/other" } })
    const applied = Result.getOrThrow(appliedConfig(running, target, [use]))
    const names = (section: "models" | "dms" | "gateways" | "workspaces" | "tts" | "agents") =>
      Object.keys(applied[section])
    assert.deepStrictEqual(names("models"), ["sonnet"])
    assert.deepStrictEqual(names("dms"), ["admin-dm"])
    assert.deepStrictEqual(names("gateways"), ["bot-main"])
    assert.deepStrictEqual(names("workspaces"), ["main-ws"])
    assert.deepStrictEqual(names("tts"), ["eleven"])
    assert.deepStrictEqual(names("agents"), ["agent-1"])
    assert.strictEqual(applied.global_repo.url, "/other")
  })

  it("is refused where what is kept and what is new are one thing under two names", () => {
    const target = configWith(
      ["agents.agent-1.defaults.workspace", "scratch"],
      ["workspaces.main-ws", GONE],
      ["workspaces.other", { path: "/var/lib/choir/workspaces/main" }]
    )
    const refused = appliedConfig(running, target, [use])
    assert.match(Result.isFailure(refused) ? refused.failure : "", /same folder[^]*workspaces/u)
  })
})
