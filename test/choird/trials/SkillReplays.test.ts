/** SkillReplays in their real processes, with a strict provider on a socket. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { SecretName } from "#schema/Ids.ts"
import { SkillName } from "#schema/Skill.ts"
import type { TrialTask } from "#schema/Trial.ts"
import { SkillReplays } from "#src/choird/trials/SkillReplays.ts"
import { skillSpec } from "../../support/skills.ts"
import { callTools, hang, makeProvider } from "../../support/testing/Provider.ts"
import { agentConfig } from "../../support/testing/TestAgent.ts"

const SKILL = skillSpec({
  states: {
    look: {
      objective: "Read.",
      allowed_tools: ["choir.fs.read", "choir.exec"],
      transitions: [{ on: "complete", to: "done" }]
    },
    done: { terminal: true }
  }
})

const layer = SkillReplays.layer.pipe(Layer.provideMerge(NodeServices.layer))

const taskFor = (endpoint: string, more: Partial<TrialTask> = {}): TrialTask => {
  const config = agentConfig()
  const small = { ...Object.values(config.models)[0]!, endpoint, secret: SecretName.make("key") }
  return {
    config: { ...config, models: { [config.llm]: small } },
    secrets: { [SecretName.make("key")]: Redacted.make("k-123456") },
    skills: [SKILL],
    manifests: [],
    skill: SkillName.make(SKILL.name),
    record: [],
    ...more
  }
}

const trialFolders = () => readdirSync(tmpdir()).filter((name) => name.startsWith("choir-trial-"))

describe("a trial's process", () => {
  it.live("runs a skill with a model's key and starts no process", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      const outside = join(tmpdir(), `choir-outside-${process.pid}`)
      yield* provider.script(
        callTools([
          { name: "choir-fs-read", input: { path: "note.md" } },
          { name: "choir-exec", input: { command: `touch ${outside}.ran` } }
        ]),
        callTools([{ name: "choir-skill-transition", input: { on: "complete", output: { ok: true } } }])
      )
      const trials = yield* SkillReplays
      const outcome = yield* trials.run(taskFor(provider.endpoint))
      assert.deepInclude(outcome, { outcome: "completed", output: { ok: true }, path: ["look", "done"], steps: 2 })
      const [first] = yield* provider.requests.all
      assert.strictEqual(first?.headers["authorization"], "Bearer k-123456")
      assert.isFalse(existsSync(`${outside}.ran`))
      assert.isEmpty(trialFolders())
    }).pipe(Effect.provide(layer), Effect.scoped)
  )

  it.live("ends with its trial", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.script(hang)
      const trials = yield* SkillReplays
      const running = yield* Effect.forkChild(trials.run(taskFor(provider.endpoint)))
      yield* provider.requests.at(0)
      yield* Fiber.interrupt(running)
      assert.isEmpty(trialFolders())
    }).pipe(Effect.provide(layer), Effect.scoped)
  )
})
