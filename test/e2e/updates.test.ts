/** Updates as whole programs: choird dies at each of their steps. */
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule, Stream } from "effect"
import { AgentId, type SessionId } from "#schema/Ids.ts"
import type { UpdateOutcome } from "#schema/AgentsApi.ts"
import type { AgentStatus } from "#schema/AgentSummary.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { AGENT, type Choird } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { SIZE } from "../support/size.ts"
import { historyProblems } from "../support/verifyHistory.ts"

const OTHER = AgentId.make("other")

/** Where choird dies: at a line of the progress, or when an agent that is restarted has come so far. */
const POINTS: ReadonlyArray<{ readonly line: string; readonly status?: AgentStatus }> = [
  { line: `${AGENT}: fetch agent` },
  { line: `${AGENT}: write` },
  { line: `${AGENT}: restart`, status: "stopping" },
  { line: `${AGENT}: restart`, status: "starting" },
  { line: `${OTHER}: restart`, status: "starting" }
]

const often = Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(1500)])

const twoAgents = Effect.gen(function* () {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    config: ({ home }) => {
      const repo = { url: join(home, "sources/agent") }
      const agent = (workspace: string, dm: string) => ({ repo, defaults: { workspace, llm: "test", dm } })
      return {
        workspaces: { main: { path: join(home, "workspaces/main") }, spare: { path: join(home, "workspaces/spare") } },
        dms: {
          me: { gateway: "terminal", user_id: "local", admin: true },
          you: { gateway: "terminal", user_id: "you" }
        },
        agents: { [AGENT]: agent("main", "me"), [OTHER]: agent("spare", "you") },
        heartbeat_interval_ms: 200
      }
    }
  })
  mkdirSync(join(choir.home, "workspaces/spare"))
  const choird = yield* choir.start
  const ids = [AGENT, OTHER]
  for (const id of ids) assert.strictEqual((yield* choirctl(choir.home, ["agent", "build", id])).code, 0)
  for (const id of ids) yield* choir.api.agents.start({ params: { id }, payload: {} })
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", join(choir.home, "sources/agent"), ...args], { encoding: "utf8", stdio: "pipe" })
  const commit = (name: string, text: string) => {
    writeFileSync(join(choir.home, "sources/agent", name), text)
    git("add", "--all")
    git("-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "--message", name)
  }
  const updated = Effect.map(choirctl(choir.home, ["agent", "update-all", "--json"]), (ran) => {
    return document(ran) as ReadonlyArray<UpdateOutcome>
  })
  const running = Effect.retry(
    Effect.filterOrFail(choir.api.agents.list(), (all) => all.every(({ status }) => status === "running")),
    often
  )
  return { ...choir, choird, commit, running, updated }
})
type Installation = Effect.Success<typeof twoAgents>

/** Updates all agents and kills choird at this point. */
const killAt = Effect.fnUntraced(function* (
  { api }: Installation,
  choird: Choird,
  { line, status }: (typeof POINTS)[number]
) {
  const [id] = line.split(":")
  const there =
    status === undefined
      ? Effect.void
      : Effect.retry(
          Effect.filterOrFail(api.agents.list(), (all) =>
            all.some((agent) => agent.agent_id === id && agent.status === status)
          ),
          Schedule.spaced("2 millis")
        )
  const kill = Effect.andThen(there, choird.signal("SIGKILL"))
  const seen = yield* Stream.unwrap(api.updates.all()).pipe(
    Stream.filter((progress) => progress.type === "step" && progress.text.startsWith(line)),
    Stream.mapEffect(() => kill),
    Stream.runHead,
    Effect.option
  )
  yield* choird.exited
  return Option.isSome(seen)
})

describe("updates", () => {
  it.live(
    "survive a kill of choird at each step: both agents run again in their sessions, and the next update ends it",
    () =>
      Effect.gen(function* () {
        const choir = yield* twoAgents
        const { api, commit, events, running, updated } = choir
        let { choird } = choir
        const sessions = (yield* api.agents.list()).map(({ session_id }) => session_id)
        let version: string | null = null
        for (const [index, point] of POINTS.filter((_, at) => at % SIZE.updateStep === 0).entries()) {
          commit("identity/SOUL.md", `number ${index}`)
          assert.isTrue(yield* killAt(choir, choird, point), JSON.stringify(point))
          choird = yield* choir.start
          const back = yield* running
          assert.deepStrictEqual(
            back.map(({ session_id }) => session_id),
            sessions,
            JSON.stringify(point)
          )
          for (const { outcome, error } of yield* updated)
            assert.include(["redeployed", "skipped"], outcome, error?.message)
          const after = yield* running
          assert.strictEqual(new Set(after.map(({ image_version }) => image_version)).size, 1)
          assert.notStrictEqual(after[0]?.image_version, version)
          version = after[0]?.image_version ?? null
        }
        const { inbox_id } = yield* choir.send("update-1", "hello")
        yield* choir.settled(inbox_id)
        const session_id = sessions[0] as SessionId
        assert.deepStrictEqual(historyProblems(session_id, yield* events(session_id)), [])
      }).pipe(Effect.scoped)
  )
})
