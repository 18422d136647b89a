import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { says } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, ticking } from "../../support/testing/TestAgent.ts"

const ME = ResourceName.make("me")
const BOB = ResourceName.make("bob")

/** The event and the prompt of one message to an agent with this configuration. */
const told = Effect.fnUntraced(function* (writers: Readonly<Record<ResourceName, ResourceName>> | undefined) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const prompts: Array<ReadonlyArray<Message>> = []
  const config = { ...agentConfig(), ...(writers === undefined ? {} : { writers }) }
  const script = (messages: ReadonlyArray<Message>) =>
    Effect.sync(() => {
      prompts.push(messages)
      return says("done")
    })
  yield* Effect.forkScoped(runAgent({ plane, script, config }))
  yield* plane.say("pay the rent")
  yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
  const [message] = ofType(plane.events, "UserMsg")
  const asked = prompts[0]?.findLast(({ content, role }) => role === "user" && content?.includes("rent"))
  return { payload: message?.payload, content: asked?.content }
})

describe("a message", () => {
  it.effect("has its writer's name in the log and in the prompt where several people talk to the agent", () =>
    Effect.gen(function* () {
      const { content, payload } = yield* told({ [ME]: BOB })
      assert.deepInclude(payload, { dm: ME, writer: BOB, text: "pay the rent" })
      assert.strictEqual(content, "[Written by bob:]\npay the rent")
    }).pipe(Effect.scoped)
  )

  it.effect("is shown as it was written where one person talks to the agent", () =>
    Effect.gen(function* () {
      const { content, payload } = yield* told(undefined)
      assert.notProperty(payload, "writer")
      assert.strictEqual(content, "pay the rent")
    }).pipe(Effect.scoped)
  )
})
