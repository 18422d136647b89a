import { statSync, writeFileSync, readFileSync, chmodSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Redacted, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { ResourceName, SecretName } from "#schema/Ids.ts"
import { Images } from "#src/choird/images/Images.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { LAST_GOOD_FILE } from "#src/shared/config/configFiles.ts"
import { skillText } from "../../support/skills.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../support/choird.ts"
import { DESK } from "../../support/stores.ts"
import { makeGitRepo } from "../../support/gitRepo.ts"
import { GLOBAL_FILES } from "../../support/images.ts"
import { INVALID, invalidConfig, placeOf } from "../../support/invalidConfigs.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

type Table = Readonly<Record<string, object>>
/** The sections of config.json that are tables. */
type Json = Readonly<Record<"agents" | "models", Table>>

const model = (name: string, more: object = {}) => ({
  provider: "test",
  model: name,
  endpoint: "http://127.0.0.1:1",
  secret: `${name}-key`,
  ...more
})

/** A home with two real repositories, and its choird. Heartbeats are far apart, so that what an agent has at once was pushed. */
const setUp = Effect.gen(function* () {
  const home = yield* makeAgentHome(() => ({
    models: { small: model("small"), large: model("large"), spare: model("spare") },
    heartbeat_interval_ms: 20_000,
    crash_detection_threshold_ms: 40_000
  }))
  const global = makeGitRepo(join(home.workspace, "../global"))
  const own = makeGitRepo(join(home.workspace, "../own"))
  global.commit(GLOBAL_FILES)
  own.commit({ "identity/SOUL.md": "one" })
  const file = join(home.home, "config.json")
  const edit = (change: (config: Json) => object) => {
    const config = JSON.parse(readFileSync(file, "utf8")) as Json
    home.write("config.json", { ...config, ...change(config) })
  }
  edit(({ agents }) => {
    const agent = { ...agents[home.agent_id], repo: { url: own.path } }
    return { global_repo: { url: global.path }, agents: { [home.agent_id]: agent } }
  })
  home.write("secrets.json", { "small-key": "s1", "large-key": "l1", "spare-key": "x1" })
  const life = yield* beginLife(home.home)
  const configuration = yield* life.within(Reconfiguration)
  const store = yield* life.within(ConfigStore)
  const load = configuration.load("tester", () => Effect.void)
  const refused = <A>(doing: Effect.Effect<A, { kind: string; hint: string }>) =>
    Effect.map(Effect.flip(doing), ({ hint, kind }) => `${kind}: ${hint}`)
  const outbox = yield* life.within(Outbox)
  let questions = 0
  /** What the agent answers to the next question for what it has. */
  const asked = Effect.fnUntraced(function* (pattern: RegExp) {
    questions += 1
    yield* life.say(home.agent_id, "model")
    const answers = outbox.wakes(DESK).pipe(
      Stream.mapEffect(() => outbox.undelivered(DESK, undefined)),
      Stream.map((rows) => rows.filter(({ agent_id }) => agent_id === home.agent_id)),
      Stream.filter((rows) => rows.length >= questions)
    )
    const found = yield* Stream.runHead(answers)
    assert.match(Option.getOrThrow(found)[questions - 1]?.text ?? "", pattern)
  })
  return { ...home, ...life, asked, configuration, edit, global, load, own, refused, store }
})

const audited = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly action: string; readonly detail: object }>`SELECT action, detail FROM choir_control.audit
    WHERE who = 'tester' ORDER BY id`
)

const lines = (rows: ReadonlyArray<{ path: string; change: string; class: string; command: string }>) =>
  rows.map((row) => `${row.path} ${row.change} [${row.class}] ${row.command}`)

const restartOf = (id: AgentId) => `choirctl agent restart ${id}`

describe("Reconfiguration", { timeout: 2 * LIVE.timeout }, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("loads, compares and applies; the agent has it at once, and a restart takes over the rest (R58)", () =>
      Effect.gen(function* () {
        const { agent_id, asked, configuration, edit, home, lifecycle, load, refused, store, within } = yield* setUp
        const { version } = yield* store.current
        assert.strictEqual(yield* refused(configuration.apply("tester")), "NOTHING_STAGED: choirctl config load")
        assert.deepStrictEqual(yield* configuration.diff, [])
        yield* lifecycle.start(agent_id, {})
        yield* asked(/^1: small small s1$/u)

        edit(({ agents, models }) => {
          const defaults = { workspace: "main", llm: "large", dm: "desk" }
          return {
            models: { ...models, small: model("small", { secret: "large-key" }) },
            agents: { [agent_id]: { ...agents[agent_id], defaults } },
            runtime: { type: "process", pids: 100 }
          }
        })
        const loaded = yield* load
        assert.deepStrictEqual(
          loaded.repos.map(({ repo, stale }) => [repo, stale]),
          [
            ["global", false],
            [agent_id, false]
          ]
        )
        const rows = [
          `agents.${agent_id}.defaults.llm changed [restart-required] ${restartOf(agent_id)}`,
          "models.small.secret changed [hot-reload] choirctl config apply",
          "runtime.pids added [restart-required] choirctl daemon stop && choirctl daemon start"
        ].map((row) => row.replace("pids added", "pids changed"))
        // The image of this home was made of no commit of these repositories.
        const ofConfig = (all: ReadonlyArray<{ path: string }>) => all.filter(({ path }) => !path.includes(" repo"))
        assert.deepStrictEqual(lines(ofConfig(yield* configuration.diff) as never), rows)
        assert.strictEqual((yield* store.current).version, version)
        yield* asked(/^1: small small s1$/u)

        const applied = yield* configuration.apply("tester")
        assert.deepStrictEqual([applied.previous, applied.version], [version, version + 1])
        assert.deepStrictEqual(lines(applied.applied), [rows[1]])
        yield* asked(/^1: small small l1$/u)
        assert.deepStrictEqual(lines(ofConfig(yield* configuration.diff) as never), [rows[0], rows[2]])
        yield* lifecycle.stop(agent_id)
        yield* lifecycle.start(agent_id, {})
        yield* asked(/^2: large large l1$/u)
        assert.deepStrictEqual(lines(ofConfig(yield* configuration.diff) as never), [rows[2]])

        const kept = join(home, LAST_GOOD_FILE)
        assert.strictEqual(statSync(kept).mode & 0o777, 0o600)
        const again = yield* Schema.decodeUnknownEffect(Config)(JSON.parse(readFileSync(kept, "utf8")))
        assert.deepStrictEqual(again, (yield* store.current).config)
        const details = yield* within(audited)
        assert.deepStrictEqual(
          details.map(({ action }) => action),
          ["config.apply", "config.load", "config.apply"]
        )
        assert.deepInclude(details[2]?.detail ?? {}, { version: version + 1, previous: version })
        assert.deepStrictEqual<unknown>(details[0]?.detail, { refused: "NOTHING_STAGED", paths: [] })
      })
    )

    it.effect("applies exactly the plan that was shown, secrets included, and a restart takes its defaults over", () =>
      Effect.gen(function* () {
        const { agent_id, asked, configuration, edit, lifecycle, load, refused, store, write } = yield* setUp
        const { version } = yield* store.current
        yield* lifecycle.start(agent_id, {})
        yield* asked(/^1: small small s1$/u)
        const defaults = (llm: string) =>
          edit(({ agents }) => ({
            agents: { [agent_id]: { ...agents[agent_id], defaults: { workspace: "main", llm, dm: "desk" } } }
          }))
        defaults("large")
        write("secrets.json", { "small-key": "s1", "large-key": "l2", "spare-key": "x1" })
        yield* load
        const shown = yield* configuration.plan
        const ofConfig = shown.changes.filter(({ path }) => !path.includes(" repo"))
        assert.deepStrictEqual(
          ofConfig.map(({ after, applies, before, path, restarts }) => [path, before, after, applies, restarts]),
          [
            [`agents.${agent_id}.defaults.llm`, '"small"', '"large"', true, [agent_id]],
            ["secrets.large-key", null, null, true, []]
          ]
        )
        assert.notInclude(JSON.stringify(shown), "l2")

        defaults("spare")
        assert.strictEqual(
          yield* refused(configuration.applyPlan("tester", shown.plan)),
          "CHANGED: choirctl config apply"
        )
        assert.strictEqual((yield* store.current).version, version)
        yield* load
        assert.strictEqual(
          yield* refused(configuration.applyPlan("tester", shown.plan)),
          "CHANGED: choirctl config apply"
        )

        defaults("large")
        yield* load
        const { plan } = yield* configuration.plan
        const applied = yield* configuration.applyPlan("tester", plan)
        assert.strictEqual(applied.version, version + 1)
        assert.include(
          applied.applied.map(({ path }) => path),
          "secrets.large-key"
        )
        const restarted = yield* lifecycle.restart(agent_id)
        assert.deepStrictEqual<unknown>([restarted.bindings?.llm, restarted.bindings?.explicit], ["large", []])
        yield* asked(/^2: large large l2$/u)
        yield* configuration.applyPlan("tester", plan)
        yield* load
        assert.deepStrictEqual(
          (yield* configuration.plan).changes.filter(({ path }) => !path.includes(" repo")),
          []
        )
        assert.strictEqual((yield* store.current).version, version + 1)

        const named = yield* lifecycle.restart(agent_id, { llm: ResourceName.make("spare") })
        assert.deepStrictEqual<unknown>([named.bindings?.llm, named.bindings?.explicit], ["spare", ["llm"]])
        const kept = yield* lifecycle.restart(agent_id)
        assert.deepStrictEqual<unknown>([kept.bindings?.llm, kept.bindings?.explicit], ["spare", ["llm"]])
        const twice = yield* Effect.flip(lifecycle.start(agent_id, { llm: ResourceName.make("small") }))
        assert.strictEqual(twice.hint, `choirctl agent restart ${agent_id} --llm small`)
        const gone = yield* Effect.flip(lifecycle.restart(agent_id, { llm: ResourceName.make("nowhere") }))
        assert.strictEqual(gone.kind, "NOT_READY")
        assert.strictEqual((yield* lifecycle.view(agent_id)).status, "running")
        edit(({ agents }) => ({ agents: { ...agents, late: agents[agent_id] } }))
        const unknown = yield* Effect.flip(lifecycle.view("late" as AgentId))
        assert.deepInclude(unknown, { kind: "UNKNOWN_AGENT", hint: "choirctl config apply" })
      })
    )

    it.effect("goes back to what an earlier version held, under a new number, and lists them all (R56)", () =>
      Effect.gen(function* () {
        const { configuration, edit, load, refused, store } = yield* setUp
        const { config: first, version } = yield* store.current
        edit(() => ({ budgets: { max_core_jobs: 2 }, runtime: { type: "process", cpus: 1 } }))
        yield* load
        yield* configuration.apply("tester")
        assert.strictEqual((yield* store.current).config.budgets.max_core_jobs, 2)
        const back = yield* configuration.rollback("tester", version)
        assert.strictEqual(back.version, version + 2)
        assert.deepStrictEqual(lines(back.applied), [
          "budgets.max_core_jobs changed [hot-reload] choirctl config apply"
        ])
        assert.deepStrictEqual(yield* store.current.pipe(Effect.map(({ config }) => config)), first)
        assert.deepStrictEqual(yield* configuration.version(version), first)
        assert.deepStrictEqual(
          (yield* configuration.history)
            .slice(0, 3)
            .map(({ action, running, version, who }) => [version, action, who, running]),
          [
            [version + 2, "rollback", "tester", true],
            [version + 1, "apply", "tester", false],
            [version, "start", "choird", false]
          ]
        )
        assert.strictEqual(
          yield* refused(configuration.rollback("tester", 1_000_000)),
          "NO_SUCH_VERSION: choirctl config history"
        )
        assert.strictEqual((yield* store.current).version, version + 2)

        const gate = yield* Deferred.make<void>()
        const reached = yield* Deferred.make<void>()
        const waiting = configuration.load("tester", () =>
          Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate))
        )
        const loading = yield* Effect.forkChild(waiting)
        yield* Deferred.await(reached)
        assert.match(yield* refused(configuration.apply("tester")), /^BUSY: /u)
        assert.match(yield* refused(load), /^BUSY: /u)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(loading)
      })
    )

    it.effect("hands new secrets to the agent; the old value is unused then, and no value is told (R35)", () =>
      Effect.gen(function* () {
        const { agent_id, asked, configuration, home, lifecycle, load, refused, store, within, write } = yield* setUp
        yield* lifecycle.start(agent_id, {})
        yield* asked(/^1: small small s1$/u)
        const { version } = yield* store.current
        write("secrets.json", { "small-key": "s2-canary", "large-key": "l1", new: "n-canary" })
        yield* load
        assert.deepStrictEqual(
          lines(yield* configuration.diff).filter((line) => line.startsWith("secrets.")),
          [
            "secrets.new added [hot-reload] choirctl secret apply",
            "secrets.small-key changed [hot-reload] choirctl secret apply",
            "secrets.spare-key removed [hot-reload] choirctl secret apply"
          ]
        )
        yield* configuration.apply("tester")
        yield* asked(/^1: small small s1$/u)
        const report = yield* configuration.applySecrets("tester")
        assert.deepStrictEqual(
          report.changed.map(({ change, name }) => `${name} ${change}`),
          ["new added", "small-key changed", "spare-key removed"]
        )
        assert.isAbove(report.version, version)
        yield* asked(/^1: small small s2-canary$/u)
        const held = yield* store.secret(SecretName.make("small-key"))
        assert.strictEqual(Redacted.value(held), "s2-canary")
        assert.isFalse(lines(yield* configuration.diff).some((line) => line.startsWith("secrets.")))
        chmodSync(join(home, "secrets.json"), 0o644)
        assert.match(yield* refused(configuration.applySecrets("tester")), /^CONFIG: chmod 600 /u)
        const told = JSON.stringify([report, yield* within(audited), yield* configuration.history])
        assert.notInclude(told, "canary")
        assert.include(told, '"names":["new","small-key","spare-key"]')
      })
    )

    it.effect("keeps what a running agent is bound to, and refuses what it could not take over", () =>
      Effect.gen(function* () {
        const { agent_id, asked, configuration, edit, lifecycle, load, refused, store } = yield* setUp
        yield* lifecycle.start(agent_id, {})
        edit(({ models }) => ({ models: { ...models, small: model("small", { secret: "no-key" }) } }))
        yield* load
        const { version } = yield* store.current
        assert.strictEqual(
          yield* refused(configuration.apply("tester")),
          "NOT_READY: choirctl secret set no-key && choirctl secret apply"
        )
        edit(({ models }) => {
          const { small: _, ...rest } = models
          return { models: rest, agents: {} }
        })
        yield* load
        const { pending } = yield* configuration.apply("tester")
        assert.deepStrictEqual(
          pending.map(({ path }) => path),
          [`agents.${agent_id}`, "models.small"]
        )
        assert.strictEqual((yield* store.current).version, version)
        yield* asked(/^1: small small s1$/u)
        yield* lifecycle.stop(agent_id)
        const last = yield* configuration.apply("tester")
        assert.deepStrictEqual([last.applied.length, last.pending.length], [2, 0])
        assert.notProperty((yield* store.current).config.models, "small")
        assert.strictEqual(yield* refused(configuration.apply("tester")), "NOTHING_STAGED: choirctl config load")
      })
    )

    it.effect("tells what commits change of images, until they are built and mounted (D42)", () =>
      Effect.gen(function* () {
        const { agent_id, configuration, edit, global, lifecycle, load, own, within } = yield* setUp
        const sources = { global: { url: global.path, ref: "main" }, agent: { url: own.path, ref: "main" } }
        const build = within(Effect.flatMap(Images, (images) => images.build(agent_id, sources)))
        yield* build
        yield* lifecycle.start(agent_id, {})
        yield* load
        assert.deepStrictEqual(yield* configuration.diff, [])
        global.commit({ ...GLOBAL_FILES, "tools/echo": "#!/bin/sh\nexit\n", "README.md": "x" })
        own.commit({ "identity/SOUL.md": "two", "skills/walk.json": skillText("walk") })
        yield* load
        const both = `choirctl agent build ${agent_id} && choirctl agent restart ${agent_id}`
        const shown = (yield* configuration.diff).map(({ change, command, path }) => [path, change, command])
        assert.deepStrictEqual(
          shown.map(([path]) => path),
          [
            "global repo",
            "global:tools/echo",
            `${agent_id} repo`,
            `${agent_id}:identity/SOUL.md`,
            `${agent_id}:skills/walk.json`
          ]
        )
        assert.match(shown[0]?.[1] ?? "", /^[0-9a-f]{7} -> [0-9a-f]{7}$/u)
        assert.deepStrictEqual(shown[4]?.slice(1), ["added", both])
        yield* build
        assert.isTrue(
          (yield* configuration.diff).every(({ command }) => command === `choirctl agent restart ${agent_id}`)
        )
        yield* lifecycle.restart(agent_id)
        assert.deepStrictEqual(yield* configuration.diff, [])

        own.commit({ "tools/bad.json": "{" })
        global.commit({ "identity/USER.md": "u" })
        const bad = yield* Effect.flip(load)
        assert.deepStrictEqual(bad.problems.map(({ path }) => path).sort(), [
          `${agent_id} and global:identity/SOUL-CORE.md`,
          `${agent_id} and global:identity/SOUL.md`,
          `${agent_id}:tools/bad.json`
        ])
        edit(({ agents }) => ({ agents: { [agent_id]: { ...agents[agent_id], repo: { url: "/gone" } } } }))
        global.commit(GLOBAL_FILES)
        const { repos, warnings } = yield* load
        assert.deepStrictEqual(repos[1], { repo: agent_id, commit: null, stale: true })
        assert.match(warnings.join("\n"), /cannot fetch \/gone.*There is no earlier clone/u)
      })
    )

    it.effect("stages nothing of 200 wrong configurations, and tells the path and reason of each (R57)", () =>
      Effect.gen(function* () {
        const { configuration, home, load, refused, store } = yield* setUp
        const before = yield* store.current
        for (const row of INVALID) {
          writeFileSync(join(home, "config.json"), JSON.stringify(invalidConfig(row)))
          const { kind, problems } = yield* Effect.flip(load)
          assert.strictEqual(kind, "CONFIG")
          const place = placeOf(row)
          const found = problems.find(({ path }) => path === place || path.startsWith(`${place}.`))
          assert.isDefined(found, `${place} of ${JSON.stringify(problems)}`)
          assert.isNotEmpty(found?.reason)
        }
        assert.isAtLeast(INVALID.length, 200)
        assert.strictEqual(yield* refused(configuration.apply("tester")), "NOTHING_STAGED: choirctl config load")
        assert.deepStrictEqual(yield* store.current, before)
        assert.property(before.config.models, ResourceName.make("small"))
      })
    )
  })
})
