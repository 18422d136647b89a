import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { AGENT, fakeChoird, SESSION } from "../../support/fakeChoird.ts"
import { FACT } from "../../support/fakeMemory.ts"

/** A home whose choird notes what it is asked. */
const opened = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const calls = yield* fakeChoird(home)
  return { home, calls, run: (...args: ReadonlyArray<string>) => choirctl(home, ["memory", ...args]) }
})

describe("choirctl memory", () => {
  it.effect("lists facts and counts the rest", () =>
    Effect.gen(function* () {
      const { calls, run } = yield* opened
      const { out } = yield* run("list", AGENT, "--prefix", "user.")
      assert.match(out, /user\.city +\S.*Lives in Lyon/u)
      assert.include(out, `and 1 more: choirctl memory export ${AGENT}\n`)
      assert.include(out, "2 facts; 3 sessions in 41 searchable parts and 9 detail parts\n")
      assert.deepStrictEqual(calls, [{ name: "list memory", id: AGENT, input: { prefix: "user." } }])
    })
  )

  it.effect("shows where a fact comes from, and its earlier values without their control characters", () =>
    Effect.gen(function* () {
      const { run } = yield* opened
      const { out } = yield* run("show", AGENT, "user.city")
      assert.match(out, /written +2026-01-02T03:04:05\.678Z by the operator/u)
      assert.include(out, `by the agent, session ${SESSION} event 7`)
      assert.include(out, "untrusted: text from outside led to it")
      assert.notInclude(out, "\u001b")
      const shown = yield* run("show", AGENT, FACT.id)
      assert.include(shown.out, `the events: choirctl session events ${SESSION} --from 12`)
      const unknown = yield* run("show", AGENT, "user.town")
      assert.deepStrictEqual(
        [unknown.code, unknown.err.split("\n")[0]],
        [1, "error: agent-1 remembers nothing of that name"]
      )
      const badly = yield* run("show", AGENT, "Not A Key")
      assert.deepStrictEqual([badly.code, badly.err.includes("neither a key nor an id")], [2, true])
    })
  )

  it.effect("searches sessions, facts, or one session with its detail", () =>
    Effect.gen(function* () {
      const { calls, run } = yield* opened
      const { out } = yield* run("query", AGENT, "where does Ada live")
      assert.include(out, `session ${SESSION} events 12-15`)
      assert.include(out, "searched by words alone")
      yield* run("query", AGENT, "x", "--session", SESSION, "--limit", "3")
      assert.strictEqual((yield* run("query", AGENT, "nothing")).out, "nothing found\n")
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [
          { store: "session", query: "where does Ada live", limit: 8 },
          { store: "session", query: "x", limit: 3, session_id: SESSION },
          { store: "session", query: "nothing", limit: 8 }
        ]
      )
      const long = yield* run("query", AGENT, "x".repeat(501))
      assert.strictEqual(long.code, 2)
      assert.include(long.err, "a query has 1 to 500 characters")
      assert.notInclude(long.err, "x".repeat(61))
      const both = yield* run("query", AGENT, "x", "--store", "knowledge", "--session", SESSION)
      assert.strictEqual(both.code, 2)
    })
  )

  it.effect("sets and deletes facts", () =>
    Effect.gen(function* () {
      const { calls, run } = yield* opened
      assert.strictEqual((yield* run("set", AGENT, "user.city", "Lives in Lyon")).out, "user.city is updated\n")
      assert.include((yield* run("delete", AGENT, "user.city")).out, "user.city is deleted")
      assert.deepStrictEqual(calls, [
        { name: "set fact", id: AGENT, input: { key: "user.city", text: "Lives in Lyon" } },
        { name: "delete fact", id: AGENT, input: { key: "user.city" } }
      ])
      const badly = yield* run("set", AGENT, "User City", "x")
      assert.deepStrictEqual([badly.code, badly.err.includes("lowercase words joined by dots")], [2, true])
      const blank = yield* run("set", AGENT, "user.city", "   ")
      assert.deepStrictEqual([blank.code, blank.err.includes("a text that is not empty")], [2, true], blank.err)
    })
  )

  it.effect("forgets only with a yes, after it said what goes, and prints a receipt", () =>
    Effect.gen(function* () {
      const { calls, run } = yield* opened
      const unasked = yield* run("forget", AGENT, "--words", "4711 x")
      assert.strictEqual(unasked.code, 2)
      assert.include(unasked.err, `3 events of the session ${SESSION} will lose their text`)
      assert.include(unasked.err, `agent-1 is stopped for a moment`)
      assert.include(unasked.err, `memory forget ${AGENT} --words '4711 x' --yes`)
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["plan"]
      )
      const { out } = yield* run("forget", AGENT, "--words", "4711 x", "--yes")
      assert.include(out, "forgotten: 1 fact value, text of 3 events, 2 parts of sessions, 3 vectors, 1 queued text\n")
      assert.include(out, "not forgotten: backups that were made before keep it")
      const asJson = document(yield* run("forget", AGENT, "user.city", "--yes", "--json"))
      assert.nestedPropertyVal(asJson, "events", 3)
      yield* run("forget", AGENT, "--session", SESSION, "--events", "12-15", "--yes")
      yield* run("forget", AGENT, FACT.id, "--yes")
      assert.deepStrictEqual(
        calls.filter(({ name }) => name === "forget").map(({ input }) => input),
        [
          { type: "words", words: "4711 x" },
          { type: "fact", key: "user.city" },
          { type: "span", session_id: SESSION, first_rev: 12, last_rev: 15 },
          { type: "document", id: FACT.id }
        ]
      )
    })
  )

  it.effect("forgets nothing where nothing is found, and refuses unclear orders", () =>
    Effect.gen(function* () {
      const { calls, run } = yield* opened
      const none = yield* run("forget", AGENT, "--words", "nothing", "--yes")
      assert.deepStrictEqual([none.code, none.err.split("\n")[0]], [1, "error: agent-1 remembers nothing of it"])
      for (const args of [
        [],
        ["a", "--words", "abc"],
        ["--session", SESSION],
        ["--session", SESSION, "--events", "x"],
        ["--words", "ab"]
      ])
        assert.strictEqual((yield* run("forget", AGENT, ...args, "--yes")).code, 2, args.join(" "))
      assert.notInclude(
        calls.map(({ name }) => name),
        "forget"
      )
    })
  )

  it.effect("exports everything to a file that is not there yet", () =>
    Effect.gen(function* () {
      const { home, run } = yield* opened
      const path = join(home, "memory.jsonl")
      const { out } = yield* run("export", AGENT, path)
      assert.strictEqual(out, `${path}: 2 values of facts and 1 parts of sessions, one on each line\n`)
      const lines = readFileSync(path, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { kind: string })
      assert.deepStrictEqual(
        lines.map(({ kind }) => kind),
        ["fact", "fact", "part"]
      )
      assert.include((yield* run("export", AGENT, path)).err, "already exists")
    })
  )
})
