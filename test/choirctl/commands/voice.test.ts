import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Conflict } from "#schema/ApiError.ts"
import { ResourceName } from "#schema/Ids.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { agentModels, fakeChoird } from "../../support/fakeChoird.ts"

const CALM = ResourceName.make("calm")
const voices = [
  { name: ResourceName.make("sonnet"), type: "llm", provider: "p", model: "m" },
  { name: ResourceName.make("mouth"), type: "tts", provider: "openai", model: "tts-1" },
  { name: CALM, type: "voice", provider: "mouth", model: "nova\u001B[2J" }
] as const

describe("choirctl voice", () => {
  it.effect("lists the voices alone, and shows nothing that a terminal would obey", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { models: Effect.succeed(voices) })
      const { out } = yield* choirctl(home, ["voice", "list"])
      assert.match(out, /^NAME +SERVICE +VOICE\ncalm +mouth +nova/u)
      assert.notInclude(out, "\u001B")
      assert.lengthOf(out.trim().split("\n"), 2)
      const none = yield* temporaryFolder
      yield* fakeChoird(none)
      assert.strictEqual((yield* choirctl(none, ["voice", "list"])).out, "no voice profile is configured\n")
    })
  )

  it.effect("shows the voice of an agent, and that it has none", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { agentModels: Effect.succeed({ ...agentModels, voice_profile: CALM }) })
      assert.match((yield* choirctl(home, ["voice", "get", "agent-1"])).out, /voice +calm\n/u)
      const none = yield* temporaryFolder
      yield* fakeChoird(none, { agentModels: Effect.succeed({ ...agentModels, voice_profile: null }) })
      assert.match((yield* choirctl(none, ["voice", "get", "agent-1"])).out, /voice +none\n/u)
    })
  )

  it.effect("switches to the profile that is named, and repeats a refusal with what helps", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      yield* choirctl(home, ["voice", "set", "agent-1", "calm"])
      for (const args of [[], ["No Name"]])
        assert.strictEqual((yield* choirctl(home, ["voice", "set", "agent-1", ...args])).code, 2)
      assert.deepStrictEqual(
        calls.map(({ id, input, name }) => [name, id, input]),
        [["setModels", "agent-1", { voice_profile: "calm" }]] as never
      )
      const other = yield* temporaryFolder
      const error = { type: "NOT_READY", message: 'there is no voice profile "x"', hint: "choose one of calm" }
      yield* fakeChoird(other, { agentModels: Effect.fail(new Conflict({ error })) })
      const ran = yield* choirctl(other, ["voice", "set", "agent-1", "x", "--json"])
      assert.strictEqual(ran.code, 1)
      assert.deepStrictEqual(document(ran), { ok: false, error })
    })
  )
})
