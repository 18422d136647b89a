/** README.md and docs/operating.md: each command that they tell their reader to type is run here, or by the test that is named. */
import { execFileSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { agreedSkill } from "../support/addSkill.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { documentedProgram, mentionedCommands, pageText, typedCommands } from "../support/documentedCommands.ts"
import { putDatabase, temporaryFolder } from "../support/engines.ts"
import { AGENT, makeInstallation, ROOT } from "../support/installation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const TIME_LIMIT_MS = 300_000

/** Typed by tests of their own, which are named by how a command begins. */
const TYPED_ELSEWHERE: Readonly<Record<string, string>> = {
  "openssl req": "test/support/certificate.ts",
  "choirctl --home /new/place home accept": "test/e2e/wrongHosts.test.ts",
  "choirctl --home /a/copy home accept --copy": "test/e2e/wrongHosts.test.ts",
  "choirctl session archive": "test/e2e/retention.test.ts",
  "choirctl session delete": "test/e2e/retention.test.ts",
  "choird --transport=http": "test/e2e/https.test.ts",
  "choirctl session new AGENT [--end-jobs]": "test/e2e/newConversation.test.ts",
  "choirctl session answer ID [TEXT] [--job JOB]": "test/choirctl/commands/session.test.ts",
  "choirctl skill run ID SKILL [--input JSON]": "test/choirctl/commands/skillRun.test.ts",
  "choirctl skill cancel ID SKILL": "test/choirctl/commands/skillRun.test.ts",
  "choirctl session orphans AGENT": "test/choirctl/commands/runs.test.ts",
  "choirctl skill try SKILL": "test/e2e/writeSkill.test.ts",
  "choirctl tool try NAME": "test/e2e/trials.test.ts",
  "choirctl agent delete ID": "test/choirctl/home/configEntries.test.ts",
  "choirctl model remove NAME": "test/choirctl/home/configEntries.test.ts"
}

// What stands above it in README.md, test/e2e/firstHour.test.ts and test/e2e/demo.test.ts type into a terminal.
const [, afterFirstHour = ""] = pageText("README.md").split("## Day to day")
const operating = pageText("docs/operating.md")
const log = pageText("docs/log.md")
const typed = new Set([...typedCommands(afterFirstHour), ...typedCommands(operating)])

/** What the commands need: ids, and things that are under way when they are asked for. */
interface Place {
  readonly approval: Effect.Effect<readonly [id: string, hash: string]>
  readonly job: Effect.Effect<string>
  readonly turn: Effect.Effect<void>
  readonly rebuilt: Effect.Effect<unknown>
  readonly session: string
  readonly folder: string
  readonly home: string
}
type Args = ReadonlyArray<string>
type Run = (place: Place) => Effect.Effect<Args> | Args

const skill = join(ROOT, "docker/agent-starter/skills")

/** In the order in which they are run, beside a running choird. */
const BESIDE_CHOIRD: Readonly<Record<string, Run>> = {
  "choirctl status": () => ["status"],
  "choirctl daemon status": () => ["daemon", "status"],
  "choirctl model test main": () => ["model", "test", "test"],
  "choirctl agent base init": () => ["agent", "base", "init"],
  "choirctl agent init ID": () => ["agent", "init", "second"],
  "choirctl agent build ID": () => ["agent", "build", "second"],
  "choirctl agent start ID": () => ["agent", "start", "second"],
  "choirctl agent restart ID": () => ["agent", "restart", "second"],
  "choirctl agent update ID": () => ["agent", "update", "second"],
  "choirctl agent update-all": () => ["agent", "update-all"],
  "choirctl agent stop ID": () => ["agent", "stop", "second"],
  "choirctl agent start ID --fresh": () => ["agent", "start", "second", "--fresh"],
  "choirctl agent status AGENT": () => ["agent", "status", AGENT],
  "choirctl skill list ID": () => ["skill", "list", AGENT],
  "choirctl skill show ID SKILL": () => ["skill", "show", AGENT, "tool-builder"],
  "choirctl skill export ID SKILL DIR": ({ folder }) => ["skill", "export", AGENT, "todo-flagger", join(folder, "out")],
  "choirctl skill runs ID [SKILL]": () => ["skill", "runs", AGENT],
  "choirctl session jobs AGENT": () => ["session", "jobs", AGENT],
  "choirctl skill check PATH": () => ["skill", "check", skill],
  "choirctl tool list ID": () => ["tool", "list", AGENT],
  "choirctl model list": () => ["model", "list"],
  "choirctl model get AGENT": () => ["model", "get", AGENT],
  "choirctl model set AGENT --llm NAME": () => ["model", "set", AGENT, "--llm", "test"],
  "choirctl model set AGENT --llm NAME --default": () => ["model", "set", AGENT, "--llm", "test", "--default"],
  "choirctl session list": () => ["session", "list"],
  "choirctl session list [AGENT]": () => ["session", "list", AGENT],
  "choirctl session show ID": ({ session }) => ["session", "show", session],
  "choirctl session cores ID": ({ session }) => ["session", "cores", session],
  "choirctl session inject ID [TEXT]": ({ session }) => ["session", "inject", session, "keep it short"],
  "choirctl session compact ID [--lane L]": ({ session }) => ["session", "compact", session, "--lane", "edge"],
  "choirctl session cancel ID [JOB]": ({ job, session }) =>
    Effect.map(job, (name) => ["session", "cancel", session, name, "--wait"]),
  "choirctl session core-cancel ID JOB": ({ job, session }) =>
    Effect.map(job, (name) => ["session", "core-cancel", session, name, "--wait"]),
  "choirctl session stop ID": ({ session, turn }) => Effect.as(turn, ["session", "stop", session, "--wait"]),
  "choirctl approval list": () => ["approval", "list"],
  "choirctl approval list [AGENT] [--all]": () => ["approval", "list", AGENT, "--all"],
  "choirctl approval show ID": ({ approval }) => Effect.map(approval, ([id]) => ["approval", "show", id]),
  "choirctl approval approve ID [--hash 8HEX]": ({ approval }) =>
    Effect.map(approval, ([id, hash]) => ["approval", "approve", id, "--hash", hash]),
  "choirctl approval reject ID [--hash 8HEX] [--reason TEXT]": ({ approval }) =>
    Effect.map(approval, ([id, hash]) => ["approval", "reject", id, "--hash", hash, "--reason", "not now"]),
  // While its job runs, edge may neither run a command nor change anything outside.
  "choirctl session context ID": ({ job, session }) => Effect.as(job, ["session", "context", session]),
  "choirctl session events ID --follow": ({ session }) => ["session", "events", session],
  "choirctl prune --dry-run": () => ["prune", "--dry-run"],
  "choirctl prune": () => ["prune"],
  "choirctl session export ID [FILE]": ({ folder, session }) => [
    "session",
    "export",
    session,
    join(folder, "events.jsonl")
  ],
  "choirctl config validate": () => ["config", "validate"],
  "choirctl config apply": () => ["config", "apply"],
  "choirctl config apply --restart": () => ["config", "apply", "--restart"],
  "choirctl config apply --yes --restart": () => ["config", "apply", "--yes", "--restart"],
  "choirctl config history": () => ["config", "history"],
  "choirctl workspace list": () => ["workspace", "list"],
  "choirctl audit": () => ["audit"],
  "choirctl audit --last 20": () => ["audit", "--last", "20"],
  "choirctl logs choir": () => ["logs", AGENT, "--no-follow"],
  "choirctl logs choird --last 50": () => ["logs", "choird", "--last", "50", "--no-follow"],
  "choirctl db backup /backup/choir.gz": ({ folder }) => ["db", "backup", join(folder, "choir.gz")],
  "choirctl backup choir.tar.gz": ({ folder }) => ["backup", join(folder, "choir.tar.gz")],
  "choirctl backup choir.tar.gz --workspaces": ({ folder }) => ["backup", join(folder, "whole.tar.gz"), "--workspaces"],
  "choirctl daemon stop": () => ["daemon", "stop"],
  "choirctl db restore /backup/choir.gz": ({ folder }) => [
    "db",
    "restore",
    join(folder, "choir.gz"),
    "--force",
    "--yes"
  ],
  "choirctl restore choir.tar.gz": ({ folder }) => ["restore", join(folder, "choir.tar.gz"), "--yes"],
  "choirctl daemon start": () => ["daemon", "start"],
  "choirctl session resume ID": ({ rebuilt, session }) => Effect.as(rebuilt, ["session", "resume", session]),
  "choirctl skill add SOURCE": ({ home }) =>
    agreedSkill(home, [join(ROOT, "docker/starter/skills/careful_change.json")])
}

/** Its answer depends on the machine: a missing part is its job to tell. */
const ANY_RESULT: Readonly<Record<string, Args>> = { "choirctl doctor": ["doctor"] }

const EVENTS_CHECKED = "choirctl session events ID --json --reasoning | node verify.mjs ID"

const isElsewhere = (command: string) =>
  Object.entries(TYPED_ELSEWHERE).some(([start, file]) => command.startsWith(start) && existsSync(join(ROOT, file)))

const makePlace = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const choir = yield* makeInstallation({
    endpoint: provider.endpoint,
    database: putDatabase,
    config: { approvals: { confirm_external: "always" } }
  })
  yield* choir.start
  yield* choir.build
  const { session_id: session } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  if (session === null) return yield* Effect.die(new Error("the agent has no session"))
  const folder = yield* temporaryFolder
  const ask = (...args: Args) => Effect.map(choirctl(choir.home, [...args, "--json"]), document)
  const soon = <A>(look: Effect.Effect<A | undefined>) =>
    Effect.flatMap(look, (found) => (found === undefined ? Effect.fail("not yet") : Effect.succeed(found))).pipe(
      Effect.retry(Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(600)])),
      Effect.tapCause(() =>
        Effect.gen(function* () {
          const out: Array<unknown> = [sent]
          for (const args of [
            ["session", "events", session, "--no-follow"],
            ["agent", "status", AGENT],
            ["session", "cores", session],
            ["approval", "list"],
            ["logs", AGENT, "--no-follow"],
            ["status"]
          ])
            out.push(
              yield* Effect.map(choirctl(choir.home, args), (r) => r.out + r.err).pipe(Effect.timeoutOption(10000))
            )
          writeFileSync("/tmp/cmd-dump.json", JSON.stringify(out, null, 1))
        })
      ),
      Effect.orDie
    )
  let sent = 0
  const say = (text: string) => Effect.orDie(choir.send(`said-${++sent}`, text))
  const job = Effect.gen(function* () {
    const name = `job-${sent}`
    yield* say(`job ${name}: run sleep 60`)
    const cores = ask("session", "cores", session) as Effect.Effect<ReadonlyArray<{ readonly job_name: string }>>
    return yield* soon(Effect.map(cores, (rows) => rows.find(({ job_name }) => job_name === name)?.job_name))
  })
  const working = ask("agent", "status", AGENT) as Effect.Effect<{
    readonly lanes: ReadonlyArray<{ readonly lane: string; readonly state: string }>
  }>
  const turn = Effect.gen(function* () {
    yield* say("run sleep 60")
    yield* soon(
      Effect.map(working, ({ lanes }) => lanes.find(({ lane, state }) => lane === "edge" && /WAITING/u.test(state)))
    )
  })
  const waiting = ask("approval", "list") as Effect.Effect<ReadonlyArray<{ readonly approval_id: string }>>
  const approval = Effect.gen(function* () {
    if ((yield* waiting).length === 0) yield* say('call ledger.append {"note":"one"}')
    const { approval_id } = yield* soon(Effect.map(waiting, ([first]) => first))
    const { hash } = (yield* ask("approval", "show", approval_id)) as { readonly hash: string }
    return [approval_id, hash.slice(0, 8)] as const
  })
  const rebuilt = ask("agent", "build", AGENT)
  return { ...choir, place: { approval, folder, home: choir.home, job, rebuilt, session, turn } satisfies Place }
})

describe("the documented commands", () => {
  it("are all run by a test", () => {
    const unknown = [...typed].filter(
      (command) =>
        !Object.hasOwn(BESIDE_CHOIRD, command) &&
        !Object.hasOwn(ANY_RESULT, command) &&
        !isElsewhere(command) &&
        command !== EVENTS_CHECKED
    )
    assert.deepStrictEqual(unknown, [])
  })

  it.effect("that the prose mentions exist, with their flags", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      for (const command of mentionedCommands(pageText("README.md") + operating)) {
        const words = command.split(" ").slice(1)
        const path = words.slice(0, 3).filter((word) => /^[a-z-]+$/u.test(word) && !word.startsWith("-"))
        const flags = words.flatMap((word) => /^\[?(--[a-z-]+)/u.exec(word)?.[1] ?? [])
        const noun = path[0] === undefined || path[0] === "choird" ? [] : path.slice(0, 2)
        const help = yield* choirctl(folder, [...noun, "--help"])
        assert.strictEqual(help.code, 0, command)
        for (const flag of flags) assert.include(help.out + help.err, flag, command)
      }
    })
  )

  it.live(
    "do what they say, in one installation",
    () =>
      Effect.gen(function* () {
        const { home, place } = yield* makePlace
        const runs = Object.entries(BESIDE_CHOIRD).filter(
          ([command]) => typed.has(command) && new RegExp(process.env["ONLY"] ?? ".").test(command)
        )
        for (const [command, run] of runs) {
          const wanted = run(place)
          const args = Effect.isEffect(wanted) ? yield* wanted : wanted
          const ran = yield* choirctl(home, args)
          assert.strictEqual(ran.code, 0, `${command}: ${ran.out}${ran.err}`)
        }
        for (const args of Object.values(ANY_RESULT)) assert.include([0, 1], (yield* choirctl(home, args)).code)
        const program = join(place.folder, "verify.mjs")
        writeFileSync(program, documentedProgram(log, "verify.mjs"))
        const events = yield* choirctl(home, ["session", "events", place.session, "--json", "--reasoning"])
        const checked = execFileSync(process.execPath, [program, place.session], { input: events.out })
        assert.match(String(checked), /^\d+ events, head [0-9a-f]{64}\n$/u)
        assert.strictEqual((yield* choirctl(home, ["daemon", "stop"])).code, 0)
      }).pipe(Effect.scoped),
    TIME_LIMIT_MS
  )
})
