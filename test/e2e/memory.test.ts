/** What a person tells an agent, a day later: real processes, the embedded database and choirctl as it is typed (docs/memory.md). */
import { pathToFileURL } from "node:url"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { choirctl } from "../support/choirctl.ts"
import { AGENT, ROOT } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const DAY_MS = 24 * 60 * 60 * 1000

/** What choirctl prints; it has to succeed. */
const typedAt = (home: string) =>
  Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
    const { code, err, out } = yield* choirctl(home, args)
    assert.strictEqual(code, 0, `${args.join(" ")}: ${err}`)
    return out
  })

describe("what an agent is told", () => {
  it.live("is known a day later in a new session, can be corrected and forgotten, and the logs still verify", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise((request) => offlineModel(request, 0))
      const env: Record<string, string> = {}
      const choir = yield* makeTestInstallation({ endpoint: provider.endpoint, env })
      const typed = typedAt(choir.home)
      const say = (text: string) => typed("chat", AGENT, "--message", text)
      const first = yield* choir.start
      yield* choir.build
      yield* typed("agent", "start", AGENT)
      assert.include(yield* say("remember user.city: Ada lives in Lyon"), "Remembered user.city.")
      assert.include(yield* say("remember user.tea: Ada drinks oolong"), "Remembered user.tea.")
      yield* say("My dentist is Doctor Merganser in Elm Street, and he closes on Fridays.")
      yield* typed("agent", "stop", AGENT)
      yield* first.signal("SIGTERM")
      yield* first.exited

      env["NODE_OPTIONS"] = `--import=${pathToFileURL(join(ROOT, "test/support/movedClock.mjs")).href}`
      env["CHOIR_TEST_CLOCK_MS"] = String(DAY_MS)
      yield* choir.start
      yield* typed("agent", "start", AGENT, "--fresh")
      // The session's memory is made in the background, after its end.
      yield* typed("memory", "query", AGENT, "dentist").pipe(
        Effect.repeat({
          until: (out) => out.includes("Merganser"),
          schedule: Schedule.max([Schedule.spaced("250 millis"), Schedule.recurs(240)])
        })
      )
      assert.include(yield* say("Which city do I live in?"), "Ada lives in Lyon (fact user.city, by you")
      assert.include(yield* say("Who is my dentist in Elm Street?"), "Doctor Merganser")
      assert.include(yield* say("Why is the sky blue?"), "I am the offline model")

      assert.include(yield* say("remember user.city: Ada lives in Oslo"), "Remembered user.city.")
      assert.include(yield* say("In which city do I live now?"), "Ada lives in Oslo")
      const history = yield* typed("memory", "show", AGENT, "user.city")
      assert.match(history, /Oslo[^]*Lyon/u)

      const tea = yield* typed("memory", "forget", AGENT, "user.tea", "--yes")
      assert.match(tea, /1 fact/u)
      const dentist = yield* typed("memory", "forget", AGENT, "--words", "Merganser", "--yes")
      assert.match(dentist, /event/u)
      assert.notInclude(yield* say("What do I drink, which tea?"), "oolong")
      assert.notInclude(yield* say("Who is my dentist in Elm Street?"), "Merganser")
      for (const word of ["oolong", "Merganser"])
        for (const store of ["session", "knowledge"])
          assert.notInclude(yield* typed("memory", "query", AGENT, word, "--store", store), word)
      const sessions = JSON.parse(yield* typed("session", "list", "--json")) as ReadonlyArray<{ session_id: string }>
      assert.isAtLeast(sessions.length, 2)
      for (const { session_id } of sessions) {
        const log = yield* typed("session", "events", session_id, "--json")
        assert.notMatch(log, /oolong|Merganser/u)
        assert.include(yield* typed("session", "verify", session_id), "verified")
      }
    }).pipe(Effect.scoped)
  )
})
