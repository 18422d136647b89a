import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { ImageVersion } from "#schema/Image.ts"
import { SkillName } from "#schema/Skill.ts"
import { SKILL_BUNDLE_FILES_MAX } from "#schema/SkillOffer.ts"
import { Images } from "#src/choird/images/Images.ts"
import { type ToolTrial, ToolTrials } from "#src/choird/trials/ToolTrials.ts"
import { TrialRefused } from "#src/choird/trials/TrialRefused.ts"
import { AGENT } from "../../../support/control.ts"
import { temporaryFolder } from "../../../support/engines.ts"
import { openOperator } from "../../../support/operatorSocket.ts"
import { skillText } from "../../../support/skills.ts"

const params = { id: AGENT }

describe("an agent's skills and tools", () => {
  it.effect("are the built-in ones and those of its newest image", () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      mkdirSync(join(path, "choir/skills"), { recursive: true })
      writeFileSync(join(path, "choir/skills/tidy.json"), skillText("tidy"))
      const image = { image_version: ImageVersion.make("abc1234"), path }
      const { api } = yield* openOperator(Layer.mock(Images, { current: () => Effect.succeed(image) }))
      const rows = yield* api.skills.list({ params })
      assert.deepStrictEqual(
        rows.map(({ max_steps, name, source, states }) => [name, source, states, max_steps]),
        [
          ["tool-builder", "built-in", 5, 15],
          ["skill-builder", "built-in", 5, 15],
          ["tidy", "image", 3, 12]
        ]
      )
      const shown = yield* api.skills.show({ params: { ...params, name: SkillName.make("tidy") } })
      assert.deepStrictEqual([shown.source, shown.spec.initial_state], ["image", "look"])
      const unknown = yield* Effect.flip(api.skills.show({ params: { ...params, name: SkillName.make("no") } }))
      assert.nestedInclude(unknown, { "error.type": "UNKNOWN_SKILL", "error.hint": `choirctl skill list ${AGENT}` })
      const tools = yield* api.skills.tools({ params })
      assert.deepInclude(tools, {
        name: "choir.exec",
        source: "built-in",
        effect: "workspace",
        exposure: "both",
        description: "Run a shell command in the workspace."
      })
    })
  )

  it.effect("have the files of their folder, none where a skill is one file, and never a part of too many", () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      const folder = join(path, "choir/skills/tidy")
      mkdirSync(join(folder, "references"), { recursive: true })
      writeFileSync(join(folder, "SKILL.md"), "Tidy up.\n")
      writeFileSync(join(folder, "references/guide.md"), "First the desk.\n")
      const image = { image_version: ImageVersion.make("abc1234"), path }
      const { api } = yield* openOperator(Layer.mock(Images, { current: () => Effect.succeed(image) }))
      const of = (name: string) => api.skills.files({ params: { ...params, name: SkillName.make(name) } })
      assert.deepStrictEqual(
        (yield* of("tidy")).map(({ base64, path }) => [path, Buffer.from(base64, "base64").toString()]),
        [
          ["SKILL.md", "Tidy up.\n"],
          ["references/guide.md", "First the desk.\n"]
        ]
      )
      assert.deepStrictEqual(yield* of("other"), [])
      for (let count = 0; count <= SKILL_BUNDLE_FILES_MAX; count += 1) writeFileSync(join(folder, `${count}.md`), "x")
      assert.nestedInclude(yield* Effect.flip(of("tidy")), { "error.type": "IMAGE_DRIFT" })
    })
  )

  it.effect("are refused with the command that helps where there is no image, or a broken one", () =>
    Effect.gen(function* () {
      const { api } = yield* openOperator()
      const none = yield* Effect.flip(api.skills.list({ params }))
      assert.nestedInclude(none, { "error.type": "NO_IMAGE", "error.hint": `choirctl agent build ${AGENT}` })
      const path = yield* temporaryFolder
      mkdirSync(join(path, "choir/skills"), { recursive: true })
      writeFileSync(join(path, "choir/skills/tidy.json"), "{}")
      const image = { image_version: ImageVersion.make("abc1234"), path }
      const broken = yield* openOperator(Layer.mock(Images, { current: () => Effect.succeed(image) }))
      const drift = yield* Effect.flip(broken.api.skills.list({ params }))
      assert.nestedInclude(drift, { "error.type": "IMAGE_DRIFT" })
    })
  )
})

describe("the audit of a tool that is tried", () => {
  const payload = { tool: "letters.send", input: {}, confirmed: false }
  const details = (audit: ReadonlyArray<{ readonly detail: unknown }>) => audit.map(({ detail }) => detail)
  const tool = { tool: "letters.send", confirmed: false }

  it.live("has the call before it may act, and its interrupt when the client goes away", () =>
    Effect.gen(function* () {
      const acting = yield* Deferred.make<void>()
      const left = yield* Deferred.make<void>()
      const run = ({ begins }: ToolTrial) =>
        begins.pipe(
          Effect.andThen(Deferred.succeed(acting, undefined)),
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(left, undefined))
        )
      const { api, world } = yield* openOperator(undefined, Layer.mock(ToolTrials, { run }))
      const client = yield* Effect.forkChild(api.skills.tryTool({ params, payload }))
      yield* Deferred.await(acting)
      assert.deepStrictEqual(details(world.audit), [{ ...tool, outcome: "begun" }])
      yield* Fiber.interrupt(client)
      yield* Deferred.await(left)
      yield* Effect.repeat(Effect.yieldNow, { until: () => Effect.sync(() => world.audit.length === 2) })
      assert.deepStrictEqual(details(world.audit).slice(1), [{ ...tool, outcome: "interrupted" }])
    })
  )

  it.live(
    "says that a call which only asked was refused and which kind of failure ended another, and has one row of a call that never began",
    () =>
      Effect.gen(function* () {
        const failed = (kind: TrialRefused["kind"]) => Effect.fail(new TrialRefused({ kind, reason: "no" }))
        const asks = { type: "asks" as const, why: "it acts outside this machine" }
        const rows = (run: (trial: ToolTrial) => Effect.Effect<typeof asks, TrialRefused>) =>
          Effect.gen(function* () {
            const { api, world } = yield* openOperator(undefined, Layer.mock(ToolTrials, { run }))
            yield* Effect.exit(api.skills.tryTool({ params, payload }))
            return details(world.audit)
          })
        const begun = { ...tool, outcome: "begun" }
        assert.deepStrictEqual(yield* rows(({ begins }) => Effect.as(begins, asks)), [
          begun,
          { ...tool, refused: "NOT_CONFIRMED", asks: asks.why }
        ])
        assert.deepStrictEqual(yield* rows(({ begins }) => Effect.andThen(begins, failed("TRIAL_FAILED"))), [
          begun,
          { ...tool, outcome: "failed", error: "TRIAL_FAILED" }
        ])
        const [only, ...others] = yield* rows(() => failed("NOT_READY"))
        assert.propertyVal(only, "refused", "NOT_READY")
        assert.isEmpty(others)
      })
  )
})
