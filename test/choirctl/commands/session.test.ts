import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document, documents } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird, printedEvent, SESSION } from "../../support/fakeChoird.ts"

describe("choirctl session", () => {
  it.effect("prints events as the pinned lines, the six fields of the chain first", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const second = { ...printedEvent, event: { ...printedEvent.event, rev: 2 } }
      const calls = yield* fakeChoird(home, { events: Effect.succeed([printedEvent, second]) })
      const ran = yield* choirctl(home, ["session", "events", SESSION, "--json"])
      const lines = documents(ran)
      assert.deepStrictEqual(lines, [
        { ...printedEvent.event, hash: printedEvent.hash },
        { ...second.event, hash: second.hash }
      ])
      assert.strictEqual(Object.keys(lines[0] as object).join(" "), "v rev event_type lane payload created_at hash")
      assert.deepStrictEqual(calls[0], { name: "events", id: SESSION, input: {} })
    })
  )

  it.effect("asks for what --from, --last and --follow say", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      yield* choirctl(home, ["session", "events", SESSION, "--from", "3", "--follow"])
      yield* choirctl(home, ["session", "events", SESSION, "--last", "2"])
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [{ from: 3, follow: "true" }, { last: 2 }]
      )
      assert.strictEqual((yield* choirctl(home, ["session", "events", SESSION, "--last", "-1"])).code, 2)
    })
  )

  it.effect("lists sessions and jobs", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const sessions = yield* choirctl(home, ["session", "list", "agent-1"])
      assert.strictEqual(
        sessions.out,
        `SESSION           AGENT    STATUS  STARTED   ENDED  EVENTS\n${SESSION}  agent-1  active  just now  -      12\n`
      )
      assert.deepStrictEqual(calls[0]?.input, { agent_id: "agent-1" })
      const cores = yield* choirctl(home, ["session", "cores", SESSION])
      assert.include(cores.out, "research  REASONING")
      assert.strictEqual((yield* choirctl(home, ["session", "cores", "not-a-session"])).code, 2)
    })
  )

  it.effect("cancels the job that is named", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["session", "cancel", SESSION, "tidy"])
      assert.strictEqual(ran.out, "tidy is being cancelled\n")
      assert.deepStrictEqual(calls[0]?.input, { job_name: "tidy" })
    })
  )

  it.effect("prints the verdict of verify, and exits 1 when the chain does not hold", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const head = "cd".repeat(32)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* fakeChoird(home)
          const good = yield* choirctl(home, ["session", "verify", SESSION, "--json"])
          assert.deepStrictEqual(document(good), { ok: true, events: 12, head })
          assert.strictEqual(good.code, 0)
        })
      )
      const verdict = { ok: false, events: 12, head, problem: { rev: 4, reason: "another hash" } }
      yield* fakeChoird(home, { verify: Effect.succeed(verdict) })
      const bad = yield* choirctl(home, ["session", "verify", SESSION, "--json"])
      assert.strictEqual(bad.code, 1)
      assert.deepStrictEqual(document(bad), verdict)
      const people = yield* choirctl(home, ["session", "verify", SESSION])
      assert.strictEqual(people.out, "not valid at revision 4: another hash\n")
    })
  )
})
