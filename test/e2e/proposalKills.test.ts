/** choird is killed while it carries out what was approved, with real processes and real git: the end is the same, once (R53, R55, R6). */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Scope } from "effect"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { temporaryFolder } from "../support/engines.ts"
import { makeEvolving, patiently, TOOL } from "../support/evolving.ts"
import { startGitHttps } from "../support/gitServers.ts"
import { ROOT } from "../support/installation.ts"
import { historyProblems } from "../support/verifyHistory.ts"
import { atFull, LAYER_MS_MAX } from "../support/size.ts"

const PROPOSE = `call choir.propose.tool ${JSON.stringify(TOOL)}`
const git = (place: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", place, "-c", "user.name=x", "-c", "user.email=x@x", ...args], { encoding: "utf8" }).trim()

/** A request of choird during which it is killed, and what becomes of the request. */
interface Cut {
  readonly at: RegExp
  readonly how: "hold" | "unanswered"
}

const FETCH = /^GET .*git-upload-pack/u
const PUSH = /^POST .*git-receive-pack/u

/** A server whose repository is the agent's; choird is killed at the requests that a test names. */
const cutOff = Effect.gen(function* () {
  const root = yield* temporaryFolder
  const bare = join(root, "demo.git")
  yield* Effect.provide(createRepo(bare, join(ROOT, "docker/agent-starter"), "bare"), NodeServices.layer)
  git(bare, "config", "http.receivepack", "true")
  let armed: (Cut & { readonly reached: Deferred.Deferred<void> }) | undefined
  const server = yield* startGitHttps({
    root,
    user: "agent",
    password: "canary-of-git",
    gate: (request) => {
      if (armed === undefined || !armed.at.test(request)) return "serve"
      const { how, reached } = armed
      armed = undefined
      const isReached = () => void Deferred.doneUnsafe(reached, Effect.void)
      if (how === "unanswered") return isReached
      isReached()
      return "hold"
    }
  })
  const url = `https://${server.host}/demo.git`
  const choir = yield* makeEvolving({ url, identity: { remotes: [url] }, env: { GIT_SSL_CAINFO: server.cert } })
  /** Approves, and kills choird at each of these requests; answers where main was after each death. */
  const approveAndKill = Effect.fnUntraced(function* (approval_id: string, cuts: ReadonlyArray<Cut>) {
    const heads: Array<string> = []
    let { choird } = choir
    for (const [index, cut] of cuts.entries()) {
      const reached = yield* Deferred.make<void>()
      armed = { ...cut, reached }
      if (index === 0) yield* Effect.forkChild(choir.ctl("approve", approval_id))
      else choird = yield* choir.start
      yield* Deferred.await(reached)
      yield* choird.signal("SIGKILL")
      yield* choird.exited
      heads.push(git(bare, "rev-parse", "main"))
    }
    yield* choir.start
    return { heads, end: yield* choir.ended(approval_id) }
  })
  return { ...choir, approveAndKill, bare }
})

/** An agent that proposes, and a choird that is killed and started again. */
const make = Effect.gen(function* () {
  const suite = yield* Effect.scope
  const choir = yield* makeEvolving()
  let { choird } = choir
  const killAndStart = Effect.gen(function* () {
    yield* choird.signal("SIGKILL")
    yield* choird.exited
    // The test that comes next uses it too.
    choird = yield* Scope.provide(choir.start, suite)
  })
  return { ...choir, killAndStart }
})

class Choir extends Context.Service<Choir, Effect.Success<typeof make>>()("choir/test/KilledChoir") {
  static readonly layer = Layer.effect(Choir, make)
}

layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("a kill of choird", (it) => {
  for (const at of ["build", "update"])
    it.effect(`around the step ${at} changes nothing about the end (R53)`, () =>
      Effect.gen(function* () {
        const { api, ctl, ended, events, home, killAndStart, session_id, show, talk, waiting } = yield* Choir
        const commits = Effect.sync(() => Number(git(join(home, "sources/agent"), "rev-list", "--count", "main")))
        const [before, name] = [yield* commits, `notes.count_${at}`]
        yield* talk(`propose-${at}`, PROPOSE.replaceAll("notes.count", name))
        const { approval_id } = yield* waiting
        yield* Effect.forkChild(ctl("approve", approval_id))
        const steps = ["commit", "push", "build", "update"]
        yield* patiently(
          Effect.filterOrFail(show(approval_id), ({ step }) => steps.indexOf(step ?? "") >= steps.indexOf(at))
        )
        yield* killAndStart
        const end = yield* ended(approval_id)
        assert.strictEqual(end.status, "done", end.outcome ?? "")
        assert.strictEqual(yield* commits, before + 1)
        yield* talk(`use-${at}`, `call ${name} {}`)
        const [agent] = yield* api.agents.list()
        assert.deepStrictEqual([agent?.status, agent?.session_id], ["running", session_id])
        const history = yield* events(session_id)
        assert.deepStrictEqual(historyProblems(session_id, history), [])
        const last = history.flatMap(({ event }) =>
          event.event_type === "ToolResultCommitted" ? [event.payload.summary] : []
        )
        assert.strictEqual(last.at(-1), "there are 3 notes")
      })
    )
})

describe("a kill of choird at a request to the server of the agent's repository", () => {
  atFull(it.live)("a tool whose fetch the server held, and whose push it did and did not answer, is one commit", () =>
    Effect.gen(function* () {
      const { api, approveAndKill, bare, events, session_id, talk, waiting } = yield* cutOff
      const base = git(bare, "rev-parse", "main")
      yield* talk("propose-1", PROPOSE)
      const { end, heads } = yield* approveAndKill((yield* waiting).approval_id, [
        { at: FETCH, how: "hold" },
        { at: PUSH, how: "unanswered" }
      ])
      assert.strictEqual(end.status, "done", end.outcome ?? "")
      assert.strictEqual(git(bare, "rev-list", "--count", "main"), "2")
      // What was pushed before the second death is what counts after it.
      assert.deepStrictEqual(heads, [base, git(bare, "rev-parse", "main")])
      const [agent] = yield* api.agents.list()
      assert.deepStrictEqual([agent?.status, agent?.session_id], ["running", session_id])
      assert.deepStrictEqual(historyProblems(session_id, yield* events(session_id)), [])
    }).pipe(Effect.scoped)
  )

  it.live("an approved branch whose push the server held is merged as it was approved (R54)", () =>
    Effect.gen(function* () {
      const { approveAndKill, bare, session_id, talk, waiting } = yield* cutOff
      const base = git(bare, "rev-parse", "main")
      const blob = execFileSync("git", ["-C", bare, "hash-object", "-w", "--stdin"], {
        input: "calm\n",
        encoding: "utf8"
      })
      const index = { GIT_INDEX_FILE: join(bare, "index-of-test"), PATH: process.env["PATH"] }
      const stage = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-C", bare, ...args], { env: index, encoding: "utf8" }).trim()
      stage("read-tree", base)
      stage("update-index", "--add", "--cacheinfo", `100644,${blob.trim()},identity/NOTE.md`)
      const commit = git(bare, "commit-tree", stage("write-tree"), "-p", base, "-m", "calm")
      const branch = `proposal/${session_id}/calm`
      git(bare, "update-ref", `refs/heads/${branch}`, commit)
      yield* talk(
        "propose-1",
        `call choir.propose.repo_change ${JSON.stringify({ branch, commit, reason: "be calm" })}`
      )
      const cut = { at: PUSH, how: "hold" } as const
      const { end, heads } = yield* approveAndKill((yield* waiting).approval_id, [cut])
      assert.deepStrictEqual(heads, [base])
      assert.strictEqual(end.status, "done", end.outcome ?? "")
      assert.deepStrictEqual([git(bare, "rev-parse", "main"), git(bare, "rev-parse", branch)], [commit, commit])
    }).pipe(Effect.scoped)
  )
})
