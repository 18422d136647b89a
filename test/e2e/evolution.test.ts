/**
 * An agent in a container evolves: a tool and a skill by the built-in skills, a branch of its repository. Real engine,
 * real git server behind TLS, choirctl; the model alone is a double. One installation for all of it, since a start of one takes long.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { testEngine } from "../support/docker.ts"
import { temporaryFolder } from "../support/engines.ts"
import { isCompaction, makeEvolving, offered, TOOL } from "../support/evolving.ts"
import { startGitHttps } from "../support/gitServers.ts"
import { ROOT } from "../support/installation.ts"
import { lanAddress } from "../support/reachable.ts"
import { answer, callTools, type ProviderRequest } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"
import { atFull } from "../support/size.ts"

const engine = testEngine("an agent in a container that evolves")
/** The first build of a base image installs packages. */
const DOCKER_MS_MAX = 300_000
const TOKEN = "canary-of-git"

/** The agent's repository on a server that its container and choird reach, and the agent. */
const open = Effect.gen(function* () {
  const root = yield* temporaryFolder
  const bare = join(root, "demo.git")
  yield* createRepo(bare, join(ROOT, "docker/agent-starter"), "bare")
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", bare, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim()
  git("config", "http.receivepack", "true")
  const server = yield* startGitHttps({ root, user: "agent", password: TOKEN, address: lanAddress() })
  const url = `https://${server.host}/demo.git`
  const choir = yield* makeEvolving({
    runtime: { docker_socket: engine.socket },
    url,
    identity: { remotes: [url] },
    secrets: { "git-token": `agent:${TOKEN}` },
    env: { GIT_SSL_CAINFO: server.cert }
  })
  copyFileSync(server.cert, join(choir.workspace, "server.pem"))
  const { api, ctl, ended, params, show, waiting } = choir
  const image = Effect.map(api.agents.list(), ([agent]) => agent?.image_version)
  /** What the person reads, with the id. */
  const card = Effect.gen(function* () {
    const { approval_id } = yield* waiting
    return yield* show(approval_id)
  })
  const approve = Effect.fnUntraced(function* (approval_id: string, hash: string) {
    assert.strictEqual((yield* ctl("approve", approval_id, "--hash", hash.slice(0, 8))).code, 0)
    return yield* ended(approval_id)
  })
  /** It runs, as the same session and with another image, after what was approved. */
  const tookOver = Effect.fnUntraced(function* (before: string | null | undefined) {
    const [agent] = yield* api.agents.list()
    assert.deepStrictEqual([agent?.status, agent?.session_id], ["running", choir.session_id])
    assert.notStrictEqual(agent?.image_version, before)
    assert.deepStrictEqual(historyProblems(choir.session_id, yield* choir.events(choir.session_id)), [])
  })
  return { ...choir, approve, bare, card, git, image, params, tookOver, url }
}).pipe(Effect.provide(NodeServices.layer))

class Evolving extends Context.Service<Evolving, Effect.Success<typeof open>>()("choir/test/Evolving") {
  static readonly layer = Layer.effect(Evolving, open)
}

const move = (output: object = {}) => callTools([{ name: "choir-skill-transition", input: { on: "complete", output } }])
/** The same in a skill with a STATE. */
const keep = (writes: object = {}) => callTools([{ name: "choir-skill-transition", input: { on: "complete", writes } }])
const begin = (skill: string) => callTools([{ name: "choir-skill-start", input: { skill } }])

/** The tools that the newest note on a skill's step names, in each turn of these requests; the offered ones stay the same. */
const steps = (requests: ReadonlyArray<ProviderRequest>) => {
  const turns = requests.filter((request) => !isCompaction(request))
  assert.strictEqual(new Set(turns.map((turn) => offered(turn).join())).size, 1)
  return turns.map(({ body }) => [...JSON.stringify(body).matchAll(/Tools of this step: ([^;]*);/gu)].at(-1)?.[1])
}

const SKILL = {
  name: "note-report",
  description: "Write down how many notes there are.",
  initial_state: "look",
  states: {
    look: {
      objective: "Find out how many there are.",
      allowed_tools: ["choir.fs.search"],
      transitions: [{ on: "complete", to: "write" }]
    },
    write: {
      objective: "Write it to report.txt.",
      allowed_tools: ["choir.fs.write"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  },
  max_steps: 12
}
const proposeSkill = (spec: object) =>
  callTools([
    { name: "choir-propose", input: { kind: "skill", proposal: { spec, reason: "the user asks every day" } } }
  ])

describe.skipIf(engine.reason !== undefined)("an agent in a container", () => {
  layer(Evolving.layer, { excludeTestServices: true, timeout: DOCKER_MS_MAX })((it) => {
    it.effect(
      "is led by tool-builder to one proposal, which becomes a tool of the same session (R54, R55)",
      () =>
        Effect.gen(function* () {
          const { approve, card, git, image, provider, results, talk, tookOver } = yield* Evolving
          const before = yield* image
          const { length } = yield* provider.requests.all
          yield* provider.script(
            begin("tool-builder"),
            callTools([{ name: "choir-exec", input: { command: "touch escaped" } }]),
            keep({ request: "count the notes" }),
            keep({ manifest: TOOL.manifest }),
            keep({ problems: [] }),
            callTools([{ name: "choir-propose", input: { kind: "tool", proposal: TOOL } }]),
            keep(),
            answer("I proposed notes.count")
          )
          yield* talk("build-1", "I want a tool that counts my notes")
          const told = steps((yield* provider.requests.all).slice(length))
          const reading = "choir-memory-query, choir-fs-read"
          const thinking = "choir-memory-query"
          const proposing = "choir-propose (kind tool)"
          assert.deepStrictEqual(told.slice(1, 7), [reading, reading, thinking, thinking, proposing, proposing])
          const refused = (yield* results)[1]
          assert.deepStrictEqual([refused?.status, refused?.allowed?.transitions], ["rejected", ["complete", "cancel"]])
          const { approval_id, hash, text } = yield* card
          assert.include(text, "+#!/bin/sh")
          assert.strictEqual(git("rev-list", "--count", "main"), "1")
          const end = yield* approve(approval_id, hash)
          assert.strictEqual(end.status, "done", end.outcome ?? "")
          assert.strictEqual(
            git("log", "-1", "--format=%an <%ae> %s", "main"),
            "Robot Demo <robot@example.org> tool notes.count"
          )
          yield* tookOver(before)
          yield* talk("use-1", "call notes.count {}")
          assert.strictEqual((yield* results).at(-1)?.summary, "there are 3 notes")
        }),
      DOCKER_MS_MAX
    )

    it.effect(
      "is led by skill-builder, told what is wrong with its skill, and runs the better one with the tools of each step alone (R54, R55)",
      () =>
        Effect.gen(function* () {
          const { approve, card, git, image, provider, results, session_id, events, talk, tookOver, workspace } =
            yield* Evolving
          const before = yield* image
          const proposed = (yield* provider.requests.all).length
          const { look } = SKILL.states
          const broken = { ...SKILL.states, look: { ...look, allowed_tools: ["notes.tally"] } }
          yield* provider.script(
            begin("skill-builder"),
            keep({ request: "count, then write" }),
            proposeSkill(SKILL),
            keep({ skill: SKILL }),
            keep({ problems: [] }),
            proposeSkill({ ...SKILL, states: broken }),
            proposeSkill(SKILL),
            keep(),
            answer("I proposed note-report")
          )
          yield* talk("skill-1", "I want a report of my notes")
          const building = steps((yield* provider.requests.all).slice(proposed))
          const reading = "choir-memory-query, choir-fs-read"
          const thinking = "choir-memory-query"
          const proposing = "choir-propose (kind skill)"
          assert.deepStrictEqual(building.slice(1, 8), [
            reading,
            thinking,
            thinking,
            thinking,
            proposing,
            proposing,
            proposing
          ])
          const [early, , , wrong, right] = (yield* results).slice(-6)
          assert.deepStrictEqual(
            [early?.status, early?.allowed?.transitions],
            ["rejected", ["complete", "revise", "cancel"]]
          )
          assert.include(
            wrong?.summary,
            'the skill note-report cannot run. at ["states"]["look"]["allowed_tools"][0]: there is no tool notes.tally'
          )
          assert.strictEqual(right?.status, "success")
          const head = git("rev-parse", "main")
          const { approval_id, hash, text } = yield* card
          assert.include(text, "new file skills/note-report.json")
          assert.strictEqual(git("rev-parse", "main"), head)
          const end = yield* approve(approval_id, hash)
          assert.strictEqual(end.status, "done", end.outcome ?? "")
          assert.strictEqual(
            git("log", "-1", "--format=%an <%ae> %s", "main"),
            "Robot Demo <robot@example.org> skill note-report"
          )
          yield* tookOver(before)

          const { length } = yield* provider.requests.all
          const write = callTools([
            { name: "choir-fs-write", input: { path: "report.txt", content: "3 notes\n", mode: "overwrite" } }
          ])
          yield* provider.script(
            begin("note-report"),
            write,
            move({ notes: 3 }),
            write,
            move(),
            answer("it is written")
          )
          yield* talk("skill-2", "the report, please")
          const told = steps((yield* provider.requests.all).slice(length))
          const [looking, writing] = ["choir-fs-search", "choir-fs-write"]
          assert.deepStrictEqual(told.slice(1, 5), [looking, looking, writing, writing])
          assert.deepStrictEqual(
            (yield* results).slice(-5).map(({ status }) => status),
            ["success", "rejected", "success", "success", "success"]
          )
          assert.strictEqual(readFileSync(join(workspace, "report.txt"), "utf8"), "3 notes\n")
          const moves = (yield* events(session_id)).flatMap(({ event }) =>
            event.event_type === "SkillTransitionCommitted" && event.payload.skill !== "tool-builder"
              ? [`${event.payload.skill} ${event.payload.to}`]
              : []
          )
          assert.deepStrictEqual(moves, [
            ...["understand", "design", "validate", "propose", "done"].map((state) => `skill-builder ${state}`),
            ...["look", "write", "done"].map((state) => `note-report ${state}`)
          ])
        }),
      DOCKER_MS_MAX
    )

    atFull(it.effect)(
      "pushes branches: one that moved is not merged, a rejected one stays, an approved one is what runs then (R54)",
      () =>
        Effect.gen(function* () {
          const { approve, card, ctl, git, home, image, results, session_id, talk, tookOver, url } = yield* Evolving
          const before = yield* image
          const base = git("rev-parse", "main")
          const branch = `proposal/${session_id}/calm`
          const script = [
            "set -e; export GIT_SSL_CAINFO=/workspace/server.pem",
            `git clone -q ${url} own && cd own && git checkout -q -b ${branch}`,
            "mkdir -p identity && printf 'be calm\\342\\200\\256\\033[2J\\n' > identity/SOUL.md",
            "printf 'FROM choir-base\\nRUN echo calm > /etc/mood\\n' > Dockerfile",
            "git add -A && git commit -qm calm && git push -q origin HEAD"
          ].join("\n")
          yield* talk("push-1", `call choir.exec ${JSON.stringify({ command: script })}`)
          const commit = git("rev-parse", branch)
          const propose = (id: string) =>
            talk(id, `call choir.propose.repo_change ${JSON.stringify({ branch, commit, reason: "be calm" })}`)

          yield* propose("propose-1")
          const first = yield* card
          const facts = [
            `branch: ${branch}, commit ${commit}, tree ${git("rev-parse", `${commit}^{tree}`)}`,
            "It changes the Dockerfile",
            "It changes who the agent is",
            "+be calm\\u202e\\u001b[2J",
            "+RUN echo calm > /etc/mood",
            "identity/SOUL.md, 15 bytes, sha256 "
          ]
          for (const fact of facts) assert.include(first.text, fact)
          assert.notMatch(first.text, /[^\P{C}\n\t]/u)
          const other = git(
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "commit-tree",
            `${commit}^{tree}`,
            "-p",
            base,
            "-m",
            "else"
          )
          git("update-ref", `refs/heads/${branch}`, other)
          const moved = yield* approve(first.approval_id, first.hash)
          assert.deepStrictEqual([moved.status, moved.outcome?.startsWith("CHANGED:")], ["failed", true])
          git("update-ref", `refs/heads/${branch}`, commit)

          yield* propose("propose-2")
          const second = yield* card
          assert.strictEqual((yield* ctl("reject", second.approval_id)).code, 0)
          assert.deepStrictEqual([git("rev-parse", "main"), git("rev-parse", branch)], [base, commit])
          assert.strictEqual(yield* image, before)

          yield* propose("propose-3")
          const third = yield* card
          const end = yield* approve(third.approval_id, third.hash)
          assert.strictEqual(end.status, "done", end.outcome ?? "")
          assert.deepStrictEqual([git("rev-parse", "main"), git("rev-parse", branch)], [commit, commit])
          yield* tookOver(before)
          yield* talk(
            "mood-1",
            `call choir.exec ${JSON.stringify({ command: "cat /etc/mood; head -c 7 /choir/SOUL.md" })}`
          )
          assert.include(JSON.stringify((yield* results).at(-1)), "calm\\nbe calm")
          assert.notInclude(readFileSync(join(home, "logs/choird.log"), "utf8"), TOKEN)
        }),
      DOCKER_MS_MAX
    )
  })
})
