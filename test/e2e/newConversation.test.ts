/** A new conversation by a person's order, in whole processes: the agent runs on, knows what it remembers, and nothing of the talk before. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../support/choirctl.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { answer, callTools, makeProvider } from "../support/testing/Provider.ts"

const SUMMARY = { title: "Trains", summary: "Ada asks for trains.", decisions: [], open_points: [], facts: [] }

describe("a new conversation", () => {
  it.live("begins by /new and by choirctl, with another session and without the words of the one before", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise(({ body }) => {
        const text = JSON.stringify(body)
        if (text.includes('"name":"choir-session-summary"'))
          return callTools([{ name: "choir-session-summary", input: SUMMARY }])
        // What memory recalls comes in notes; an answer of the model itself is of this conversation.
        const said = (body as { readonly messages: ReadonlyArray<{ readonly role: string }> }).messages.filter(
          ({ role }) => role === "assistant"
        )
        return answer(`This is answer ${said.length + 1}.`)
      })
      const choir = yield* makeTestInstallation({ endpoint: provider.endpoint })
      yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: {} })
      const say = (text: string) =>
        Effect.map(choirctl(choir.home, ["chat", "demo", "--message", text]), ({ out }) => out)
      const sessions = Effect.map(choir.api.sessions.list({ query: {} }), (rows) =>
        rows.map(({ session_id, status }) => [session_id, status] as const)
      )
      assert.include(yield* say("the train to Bern"), "This is answer 1.")
      assert.include(yield* say("and back"), "This is answer 2.")
      const [first] = yield* sessions

      assert.match(yield* say("/trust"), /No text from outside/u)
      assert.match(yield* say("/new"), /new conversation/iu)
      assert.include(yield* say("the weather"), "This is answer 1.")
      const second = yield* sessions
      assert.lengthOf(second, 2)
      assert.strictEqual(second.find(([id]) => id === first?.[0])?.[1], "closed")

      const renewed = yield* choirctl(choir.home, ["session", "new", "demo"])
      assert.strictEqual(renewed.code, 0, renewed.out + renewed.err)
      assert.include(yield* say("the hotel"), "This is answer 1.")
      assert.lengthOf(yield* sessions, 3)
    }).pipe(Effect.scoped)
  )
})
