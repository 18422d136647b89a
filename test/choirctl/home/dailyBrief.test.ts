/** The brief that a first agent is offered, and the only thing in a new home that may begin by itself. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { briefOffer } from "#src/choirctl/home/dailyBrief.ts"
import { briefWriter } from "#src/choirctl/home/initAgent.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

const NEXT = AgentId.make("next")

const made = Effect.gen(function* () {
  const home = join(yield* temporaryFolder, "home")
  yield* choirctl(home, ["init"])
  return home
})

describe("a new home", () => {
  it.effect("lets nothing begin by itself but a brief at a time that was named", () =>
    Effect.gen(function* () {
      const home = yield* made
      const skillsOf = (id: string) => readdirSync(join(home, "sources/agents", id, "skills"))
      const schedules = (file: string) =>
        readFileSync(file, "utf8").match(/"(?:daily at|weekdays at|every) [^"]*"/gu) ?? []
      const global = join(home, "sources/global/skills")
      assert.deepStrictEqual(
        readdirSync(global).flatMap((name) => schedules(join(global, name))),
        []
      )
      assert.include((yield* choirctl(home, ["agent", "init", "quiet", "--json"])).out, '"daily_brief":null')
      assert.notInclude(skillsOf("quiet"), "daily-brief.json")
      for (const [id, typed, schedule] of [
        ["early", "7:30", "daily at 07:30"],
        ["abroad", "19:05 in Asia/Tokyo", "daily at 19:05 in Asia/Tokyo"]
      ] as const) {
        const ran = yield* choirctl(home, ["agent", "init", id, "--daily-brief", typed])
        assert.include(ran.out, `its daily brief begins ${schedule}`)
        const file = join(home, "sources/agents", id, "skills/daily-brief.json")
        assert.deepStrictEqual(schedules(file), [`"${schedule}"`])
        assert.isTrue(Result.isSuccess(readSkill("daily-brief", readFileSync(file, "utf8"))))
      }
      rmSync(join(home, "config.json"))
      yield* choirctl(home, ["init"])
      const kept = yield* choirctl(home, ["agent", "init", "quiet", "--daily-brief", "7:30"])
      assert.include(
        kept.out,
        `it has no daily brief from this command, since ${join(home, "sources/agents/quiet")} was there before\n`
      )
      assert.notInclude(skillsOf("quiet"), "daily-brief.json")
      for (const typed of ["noon", "25:00", "07:30 in Atlantis"])
        assert.strictEqual((yield* choirctl(home, ["agent", "init", "x", "--daily-brief", typed])).code, 2, typed)
    })
  )

  it.effect("offers a brief with its price to the first agent whose model could write one", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const key = { stdin: "sk-1\n" }
      const flags = ["--model-provider=openrouter", "--model-name=anthropic/claude-sonnet-4", "--model-secret-stdin"]
      yield* choirctl(home, ["init", ...flags], key)
      const offered = Effect.provide(briefWriter(home, NEXT, {}), NodeServices.layer)
      const writer = yield* offered
      if (writer === undefined) return assert.fail("no brief is offered")
      const { model } = writer
      const [, price] = yield* Effect.provide(briefOffer(model), NodeServices.layer)
      assert.strictEqual(
        price,
        "With anthropic/claude-sonnet-4 it costs about $0.30 a day, and never more than $12.67."
      )
      const { price: _, ...unpriced } = model
      const [, unknown] = yield* Effect.provide(briefOffer(unpriced), NodeServices.layer)
      assert.match(unknown ?? "", /price of anthropic\/claude-sonnet-4 is unknown.* never more than 16 times/u)
      // The repository of an agent that was deleted keeps its brief, which a new answer would not change.
      mkdirSync(join(home, "sources/agents", NEXT, ".git"), { recursive: true })
      assert.isUndefined(yield* offered)
      yield* choirctl(home, ["agent", "init", "agent-1"])
      assert.isUndefined(yield* Effect.provide(briefWriter(home, AgentId.make("other"), {}), NodeServices.layer))
      assert.isUndefined(yield* Effect.provide(briefWriter(yield* made, NEXT, {}), NodeServices.layer))
    })
  )
})
