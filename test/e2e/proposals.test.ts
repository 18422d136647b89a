/** An agent proposes a change to itself, a person decides, and choird carries it out: real processes, choirctl, real git. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Budgets } from "#schema/Config.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { makeEvolving, patiently, TOOL } from "../support/evolving.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { historyProblems } from "../support/verifyHistory.ts"

const PROPOSE = `call choir.propose.tool ${JSON.stringify(TOOL)}`

const make = Effect.map(makeEvolving(), (choir) => ({
  ...choir,
  repo: (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", join(choir.home, "sources/agent"), ...args], { encoding: "utf8" }).trim()
}))

class Choir extends Context.Service<Choir, Effect.Success<typeof make>>()("choir/test/ProposingChoir") {
  static readonly layer = Layer.effect(Choir, make)
}

layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("proposals", (it) => {
  it.effect("a proposed tool is read, approved, committed, built, and used by the same session (R54, R55)", () =>
    Effect.gen(function* () {
      const { api, ctl, ended, events, home, repo, session_id, show, talk, waiting } = yield* Choir
      const before = yield* api.agents.list()
      yield* talk("propose-1", PROPOSE)
      const { approval_id, request_type, summary } = yield* waiting
      assert.deepStrictEqual([request_type, summary], ["tool", "tool notes.count"])
      const asked = yield* show(approval_id)
      for (const fact of ["+#!/bin/sh", "new file tools/notes.count, executable", '+    "name": "notes.count"'])
        assert.include(asked.text, fact)
      assert.deepStrictEqual(asked.payload, TOOL)
      assert.notInclude(repo("ls-tree", "-r", "--name-only", "main"), "notes.count")
      assert.strictEqual((yield* ctl("approve", approval_id, "--hash", asked.hash.slice(0, 8))).code, 0)
      const end = yield* ended(approval_id)
      assert.strictEqual(end.status, "done", end.outcome ?? "")
      assert.strictEqual(repo("log", "-1", "--format=%an <%ae> %s"), "Robot Demo <robot@example.org> tool notes.count")
      assert.include(repo("ls-tree", "-r", "main"), "tools/notes.count.json")
      assert.strictEqual(repo("status", "--porcelain"), "")
      const after = yield* api.agents.list()
      assert.notStrictEqual(after[0]?.image_version, before[0]?.image_version)
      assert.deepStrictEqual([after[0]?.status, after[0]?.session_id], ["running", session_id])
      const shown = yield* talk("use-1", "call notes.count {}")
      const told = shown.flatMap((event) => (event.type === "message" ? [event.text] : []))
      assert.isTrue(
        told.some((text) => text.startsWith("◆ Done: tool notes.count")),
        told.join("\n")
      )
      const history = yield* events(session_id)
      assert.deepStrictEqual(historyProblems(session_id, history), [])
      const results = history.flatMap(({ event }) =>
        event.event_type === "ToolResultCommitted" ? [event.payload] : []
      )
      assert.deepStrictEqual(
        results.map(({ status }) => status),
        ["success", "success"]
      )
      assert.strictEqual(results[1]?.summary, "there are 3 notes")
      const notes = history.flatMap(({ event }) =>
        event.event_type === "InjectedInstruction" ? [event.payload.source] : []
      )
      assert.deepStrictEqual(notes, ["control_plane", "control_plane"])
      assert.notInclude(readFileSync(join(home, "logs/choird.log"), "utf8"), "canary-of-git")
    })
  )

  it.effect(
    "a proposed value of config.json becomes a version that agents take over and a person may take back; a rejected one none",
    () =>
      Effect.gen(function* () {
        const { api, ctl, ended, home, talk, waiting } = yield* Choir
        const file = () => readFileSync(join(home, "config.json"), "utf8")
        const propose = (value: number) =>
          `call choir.propose.config_change ${JSON.stringify({ change: [{ op: "set", path: "/budgets/turn_max_steps", value }], reason: "a test" })}`
        const config = (...args: ReadonlyArray<string>) => choirctl(home, ["config", ...args, "--json"])
        const versions = Effect.map(config("history"), (ran) => (document(ran) as ReadonlyArray<unknown>).length)
        const turnSteps = Effect.map(
          api.system.config(),
          (running) => (running as { readonly budgets: Budgets }).budgets.turn_max_steps
        )
        /** Agents run with a version that is the newest one. */
        const converged = (version: number) =>
          patiently(
            Effect.filterOrFail(
              api.agents.list(),
              ([agent]) => agent?.config_version === version,
              ([agent]) => `${agent?.config_version} of ${version}`
            )
          )
        const [before, count, steps] = [file(), yield* versions, yield* turnSteps]
        yield* talk("no-1", propose(5))
        yield* ctl("reject", (yield* waiting).approval_id)
        assert.deepStrictEqual([file(), yield* versions, yield* turnSteps], [before, count, steps])

        yield* talk("yes-1", propose(7))
        const { approval_id } = yield* waiting
        assert.strictEqual((yield* ctl("approve", approval_id)).code, 0)
        const end = yield* ended(approval_id)
        assert.deepStrictEqual([end.status, end.step], ["done", "apply"])
        assert.nestedPropertyVal(JSON.parse(file()), "budgets.turn_max_steps", 7)
        assert.include(file(), before.trimEnd().slice(0, -2).trimEnd())
        assert.deepStrictEqual([yield* versions, yield* turnSteps], [count + 1, 7])
        yield* converged(count + 1)

        assert.strictEqual((yield* config("rollback", String(count))).code, 0)
        assert.deepStrictEqual([yield* versions, yield* turnSteps], [count + 2, steps])
        yield* converged(count + 2)
      })
  )
})
