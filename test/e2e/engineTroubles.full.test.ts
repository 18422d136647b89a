/**
 * What becomes of an agent and its conversation when its Docker engine dies, hangs, loses its image or has no room: choird and agent as
 * whole programs, an engine of this suite's own whose disk is a small one in memory.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import { afterAll } from "vitest"
import type { SessionId } from "#schema/Ids.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { killEngine, signalEngine, startEngine, stopEngine, WITHOUT_RULES, whyNoEngine } from "../support/docker.ts"
import { BASE, docker, ensureBase } from "../support/dockerImage.ts"
import { AGENT, type Choird, makeInstallation } from "../support/installation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"

const reason = whyNoEngine("engine troubles")
/** How long the engine stays away; a minute where somebody asks for it. */
const AWAY_MS = Number(process.env["CHOIR_ENGINE_AWAY_MS"] ?? 1000)
/** What issue 5 allows between the engine's return and the truth. */
const BACK_MS_MAX = 10_000
const SUITE_MS_MAX = 300_000 + 3 * AWAY_MS

const STATE = "/var/lib/choir-docker-troubles"
const DISK = join(STATE, "data")
const BRIDGE = "choir-test2"
const start = (...dockerd: ReadonlyArray<string>) =>
  startEngine({
    state: STATE,
    bridge: `${BRIDGE}=10.215.0.1/24`,
    pool: "10.215.64.0/18",
    dockerd: [WITHOUT_RULES, ...dockerd]
  })
const quietly = (command: string, ...args: ReadonlyArray<string>) => {
  try {
    execFileSync(command, args, { stdio: "ignore" })
  } catch {
    // It is not there, which is what is wanted.
  }
}
/** What an engine that was killed left running only an engine ends. */
const clear = () => {
  if (existsSync(join(STATE, "dockerd.pid"))) {
    const socket = start()
    const left = docker(socket, "ps", "--all", "--quiet").split("\n").filter(Boolean)
    if (left.length > 0) docker(socket, "rm", "--force", ...left)
    stopEngine(STATE)
  }
  quietly("umount", "--recursive", DISK)
  quietly("ip", "link", "delete", BRIDGE)
  rmSync(STATE, { recursive: true, force: true })
}
const prepare = () => {
  clear()
  mkdirSync(DISK, { recursive: true })
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1200m,mode=0711", "choir-test", DISK])
  const socket = start("--live-restore")
  ensureBase(socket)
  return socket
}
const CLEAR_MS_MAX = 60_000
afterAll(() => {
  if (reason === undefined) clear()
}, CLEAR_MS_MAX)

/** No packages are installed in it, since the images of this suite are not what is looked at. */
const DOCKERFILE_BASE = `FROM ${BASE}
COPY choir-agent.* /opt/choir/
WORKDIR /workspace
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/choir/bin/node", "/opt/choir/choir-agent.js"]
`

/** Each step is a model's answer and a write, one after the other, for longer than choird is away. */
const LONG_JOB = `job long: ${Array.from({ length: 40 }, (_, step) => `write long/${step}.txt: ${step}`).join(", then ")}`

interface Shown {
  readonly status: string
  readonly reason: string | null
}

/** Prints a figure for docs/evidence/reliability.md, where somebody asks for one. */
const figure = <E>(what: string, of: Effect.Effect<number, E>) =>
  Effect.tap(of, (value) =>
    Effect.sync(() => {
      if (process.env["CHOIR_ENGINE_AWAY_MS"] !== undefined) process.stderr.write(`${what}: ${Math.round(value)}\n`)
    })
  )

const installation = Effect.fnUntraced(function* (docker_socket: string) {
  const provider = yield* makeProvider
  let thinking_ms = 0
  yield* provider.otherwise((request) => offlineModel(request, thinking_ms))
  const config = { heartbeat_interval_ms: 500, crash_detection_threshold_ms: 4000 }
  const base = DOCKERFILE_BASE
  const choir = yield* makeInstallation({ endpoint: provider.endpoint, runtime: { docker_socket }, config, base })
  const choird = yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const ctl = (...args: ReadonlyArray<string>) => choirctl(choir.home, [...args, "--json"])
  const shown = Effect.map(ctl("agent", "status", AGENT), (ran) => document(ran) as Shown)
  const warnings = Effect.map(ctl("status"), (ran) =>
    (document(ran) as { readonly runtime: { readonly warnings: ReadonlyArray<string> } }).runtime.warnings.join()
  )
  let said = 0
  const send = (text: string) => choir.send(`trouble-${(said += 1)}`, text)
  const talk = (text: string) =>
    Effect.flatMap(send(text), ({ inbox_id }) => Effect.timeout(choir.settled(inbox_id), "60 seconds"))
  const show = choir.api.session.show({ params: { id: session_id as SessionId } })
  /** Waits for something to be true and answers how long it took. */
  const until = <A, E>(look: Effect.Effect<A, E>, fits: (value: A) => boolean) =>
    Effect.gen(function* () {
      const from_ms = performance.now()
      let last: A | undefined
      const right = Effect.map(look, (value) => fits((last = value)))
      const seen = Effect.repeat(right, { until: (is) => is, schedule: Schedule.spaced("100 millis") })
      const found = yield* Effect.timeoutOption(seen, "2 minutes")
      assert.isTrue(Option.isSome(found), JSON.stringify(last))
      return performance.now() - from_ms
    })
  const runs = (epoch: number) =>
    until(
      Effect.all([shown, show, warnings]),
      ([agent, session, said]) =>
        agent.status === "running" && session.epoch === epoch && !/does not answer/u.test(said)
    )
  const think = (ms: number) => void (thinking_ms = ms)
  return {
    ...choir,
    choird,
    ctl,
    runs,
    send,
    session_id: session_id as SessionId,
    show,
    shown,
    talk,
    think,
    until,
    warnings
  }
})
type Installation = Effect.Success<ReturnType<typeof installation>>

const commit = ({ home }: Installation, name: string, text: string) => {
  const folder = join(home, "sources/agent")
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", folder, "-c", "user.name=T", "-c", "user.email=t@localhost", ...args], { stdio: "pipe" })
  writeFileSync(join(folder, name), text)
  git("add", "--all")
  git("commit", "--quiet", "--message", "change")
}

const kill = (pid: Option.Option<number>) => process.kill(Option.getOrThrow(pid), "SIGKILL")

const away = ({ shown, until, warnings }: Installation) =>
  Effect.gen(function* () {
    yield* until(warnings, (said) => /engine does not answer since \d+ s: .*systemctl start docker/u.test(said))
    assert.deepInclude(yield* shown, { status: "running", reason: null })
  })

/** The engine's own records: nothing of an agent starts before what was there of it has died (R8). */
const livesOf = (socket: string, since: string) => {
  const filters = ["type=container", `label=choir.agent=${AGENT}`, "event=start", "event=die"]
  const printed = docker(
    socket,
    "events",
    "--since",
    since,
    "--until",
    String(Date.now() / 1000),
    ...filters.flatMap((filter) => ["--filter", filter]),
    "--format",
    "{{.Action}}"
  )
  return printed.split("\n").filter(Boolean)
}

const imagesOf = (socket: string) =>
  docker(socket, "images", "--all", "--no-trunc", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}").split("\n").sort()

const engineDies = Effect.fnUntraced(function* (choir: Installation) {
  const { choird, runs, send, settled, shown, talk, until, warnings } = choir
  yield* talk("one")
  // With live-restore the agent goes on, and so does the conversation.
  killEngine(STATE)
  yield* away(choir)
  yield* talk("two")
  yield* Effect.sleep(AWAY_MS)
  yield* talk("three")
  start("--live-restore")
  assert.isBelow(yield* figure("engine killed, live-restore, agent alive", runs(1)), BACK_MS_MAX)
  yield* talk("four")

  // It dies while nobody can start it; who writes to it is answered afterwards.
  const alive = yield* choird.agent
  killEngine(STATE)
  yield* away(choir)
  kill(alive)
  yield* until(shown, (agent) => agent.status === "starting" && /waits for the Docker engine/u.test(agent.reason ?? ""))
  const queued = yield* send("five")
  yield* Effect.sleep(AWAY_MS)
  start("--live-restore")
  assert.isBelow(yield* figure("engine killed, the agent meanwhile", runs(2)), BACK_MS_MAX)
  yield* settled(queued.inbox_id)

  // An engine that stands still is no reason to take its agents for dead.
  signalEngine(STATE, "SIGSTOP")
  yield* until(warnings, (said) => /does not answer/u.test(said))
  yield* talk("six")
  signalEngine(STATE, "SIGCONT")
  assert.isBelow(yield* figure("engine stopped and continued", runs(2)), BACK_MS_MAX)

  // Without live-restore the engine ends what it finds when it comes back.
  killEngine(STATE)
  yield* away(choir)
  yield* talk("seven")
  yield* Effect.sleep(AWAY_MS)
  start()
  assert.isBelow(yield* figure("engine killed, without live-restore", runs(3)), BACK_MS_MAX)
  yield* talk("eight")
})

/** An agent that hangs cannot be ended without its engine: it has nothing any more, and nothing takes its place before it is gone (R8). */
const agentHangs = Effect.fnUntraced(function* (choir: Installation, choird: Choird) {
  const { ctl, runs, send, settled, show, shown, until } = choir
  const agent = Option.getOrThrow(yield* choird.agent)
  const stateOf = () => /\) (?<state>\S)/u.exec(readFileSync(`/proc/${agent}/stat`, "utf8"))?.groups?.["state"]
  killEngine(STATE)
  yield* away(choir)
  process.kill(agent, "SIGSTOP")
  const { epoch, last_rev } = yield* show
  const queued = yield* send("hung")
  yield* until(
    shown,
    ({ reason, status }) =>
      status === "starting" && /^it was silent .* its container is not gone yet/u.test(reason ?? "")
  )
  yield* Effect.sleep(AWAY_MS)
  assert.strictEqual(stateOf(), "T")
  assert.deepInclude(yield* show, { epoch, last_rev, status: "active" })
  const workspaces = document(yield* ctl("workspace", "list")) as ReadonlyArray<{ readonly leased_by: string | null }>
  assert.deepStrictEqual(
    workspaces.map(({ leased_by }) => leased_by),
    [AGENT]
  )
  start("--live-restore")
  assert.isBelow(yield* figure("agent hung while the engine was away", runs(epoch + 1)), BACK_MS_MAX)
  assert.isFalse(existsSync(`/proc/${agent}`))
  yield* settled(queued.inbox_id)
})

const imageIsLost = Effect.fnUntraced(function* (choir: Installation, socket: string) {
  const { api, choird, params, runs, talk } = choir
  // By hand, so that the breaker counts anew.
  yield* api.agents.restart({ params, payload: {} })
  yield* runs(4)
  const [running] = yield* api.agents.list()
  const tag = `choir-agent-${AGENT}:${running?.image_version}`
  docker(socket, "rmi", "--force", tag)
  kill(yield* choird.agent)
  yield* figure("image removed, agent killed, until it runs again", runs(5))
  assert.notStrictEqual(docker(socket, "images", "--quiet", tag), "")
  yield* talk("nine")
})

const diskIsFull = Effect.fnUntraced(function* (choir: Installation, socket: string) {
  const { ctl, show, shown, talk } = choir
  const before = imagesOf(socket)
  commit(choir, "Dockerfile", "FROM choir-base\nRUN head -c 400000000 /dev/zero > /filler\n")
  execFileSync("sh", ["-c", `head -c "$(( $(stat -f -c '%a*%S' ${DISK}) - 50000000 ))" /dev/zero > ${DISK}/filler`])
  const full = yield* ctl("agent", "update", AGENT)
  assert.notStrictEqual(full.code, 0)
  assert.match(full.out, /no space left on device/iu)
  assert.match(full.out, /Make room on the engine's disk: docker system df/u)
  assert.deepInclude(yield* shown, { status: "running", reason: null })
  assert.strictEqual((yield* show).epoch, 5)
  assert.deepStrictEqual(imagesOf(socket), before)
  yield* talk("ten")
  rmSync(join(DISK, "filler"))
})

const imageDoesNotStart = Effect.fnUntraced(function* (choir: Installation) {
  const { api, ctl, show, shown, talk } = choir
  const [before] = yield* api.agents.list()
  commit(choir, "Dockerfile", "FROM choir-base\nRUN echo 'process.exit(3)' > /opt/choir/choir-agent.js\n")
  const broken = yield* ctl("agent", "update", AGENT)
  assert.notStrictEqual(broken.code, 0)
  assert.match(broken.out, /START_FAILED.*did not start: it exited with code 3.*It runs on [0-9a-f]+ again/u)
  const [after] = yield* api.agents.list()
  assert.deepStrictEqual([after?.status, after?.image_version], ["running", before?.image_version])
  assert.match((yield* shown).reason ?? "", /^the image [0-9a-f]+ did not start/u)
  assert.strictEqual((yield* show).epoch, 7)
  yield* talk("still here")
  commit(choir, "Dockerfile", "FROM choir-base\nRUN touch /room\n")
  const roomy = yield* ctl("agent", "update", AGENT)
  assert.strictEqual(roomy.code, 0, roomy.out)
  assert.strictEqual((yield* show).epoch, 8)
  yield* talk("eleven")
})

/** Not the engine but choird dies: its agent works on, and what it did meanwhile is taken before its container goes (D15). */
const choirdDies = Effect.fnUntraced(function* (choir: Installation) {
  const { api, choird, runs, send, session_id, start, talk, think, until } = choir
  think(100)
  yield* send(LONG_JOB)
  yield* until(api.sessions.cores({ params: { id: session_id } }), (cores) => cores.length > 0)
  yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => existsSync(join(choir.workspace, "long")) })
  const died_ms = Date.now()
  yield* choird.signal("SIGKILL")
  yield* choird.exited
  const written = () => readdirSync(join(choir.workspace, "long")).length
  const before = written()
  // One step may have been under way already.
  yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => written() > before + 1 })
  const back_ms = Date.now()
  const next = yield* start
  yield* figure("choird killed, until its agent runs again", runs(9))
  think(0)
  yield* talk("twelve")
  return { died_ms, back_ms, next }
})

/** As after a loss of power: everything died, and choird is started before its engine, and again by its supervisor. */
const hostBoots = Effect.fnUntraced(function* (choir: Installation, choird: Choird) {
  const { runs, talk } = choir
  const agent = yield* choird.agent
  yield* choird.signal("SIGKILL")
  yield* choird.exited
  killEngine(STATE)
  kill(agent)
  const refused = yield* Effect.flip(choir.start)
  assert.match(String(refused), /there is no Docker engine at .*systemctl start docker/u)
  start()
  yield* choir.start
  assert.isBelow(yield* figure("engine up after choird", runs(11)), BACK_MS_MAX)
  yield* talk("thirteen")
})

describe.skipIf(reason !== undefined)("an agent whose engine is in trouble", { timeout: SUITE_MS_MAX }, () => {
  it.live("loses nothing that was acknowledged, and status tells the truth within 10 s (R7, R8, D15)", () =>
    Effect.gen(function* () {
      const socket = prepare()
      const choir = yield* installation(socket)
      yield* engineDies(choir)
      // From here on one engine's records hold all lives.
      const since = String(Date.now() / 1000)
      yield* imageIsLost(choir, socket)
      yield* diskIsFull(choir, socket)
      yield* imageDoesNotStart(choir)
      const { back_ms, died_ms, next } = yield* choirdDies(choir)
      const lives = livesOf(socket, since)
      const restarts = ["by hand", "image lost", "broken image", "back", "update", "choird"]
      assert.deepStrictEqual(
        lives,
        restarts.flatMap(() => ["die", "start"])
      )
      yield* agentHangs(choir, next)
      yield* hostBoots(choir, next)
      yield* choir.api.agents.stop({ params: choir.params })
      assert.strictEqual(docker(socket, "ps", "--all", "--quiet"), "")
      const history = yield* choir.events(choir.session_id)
      assert.deepStrictEqual(historyProblems(choir.session_id, history), [])
      const asked = history.flatMap(({ event }) => (event.event_type === "UserMsg" ? [event.payload.text] : []))
      assert.strictEqual(asked.length, 16)
      assert.strictEqual(new Set(asked).size, 16)
      const meanwhile = history.filter(({ event: { created_at } }) => {
        const at_ms = Date.parse(created_at)
        return at_ms > died_ms && at_ms < back_ms
      })
      assert.isAbove(meanwhile.length, 0)
      yield* figure("events of the time without choird", Effect.succeed(meanwhile.length))
    }).pipe(Effect.scoped)
  )
})
