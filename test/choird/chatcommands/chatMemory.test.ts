import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { AgentId, EDGE, ResourceName, Rev, SessionId } from "#schema/Ids.ts"
import { DocumentId, type Fact, FactKey, type Forget, type MemoryHit } from "#schema/Memory.ts"
import { makeChatMemory } from "#src/choird/chatcommands/chatMemory.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Forgetting, ForgetTooMuch } from "#src/choird/memory/Forgetting.ts"
import { Knowledge } from "#src/choird/memory/Knowledge.ts"
import { MemoryContents } from "#src/choird/memory/MemoryContents.ts"
import { Recall } from "#src/choird/memory/Recall.ts"

const SESSION = SessionId.make("0k8v3w9m2p1n4q7r")
const AT = "2026-01-02T03:04:05.678Z"
const speaker = (dm: string) => ({
  agent_id: AgentId.make("ada"),
  gateway: ResourceName.make("bot"),
  dm: ResourceName.make(dm),
  writer: ResourceName.make(dm),
  request_id: "1",
  admin: true
})
const PHONE = speaker("phone")

const FACT: Fact = {
  id: DocumentId.make("00000000-0000-4000-8000-000000000001"),
  key: FactKey.make("user.city"),
  text: "Lives in\nLyon",
  untrusted: true,
  source: { kind: "operator" },
  created_at: AT,
  valid_to: null,
  superseded_by: null
}
const HIT: MemoryHit = {
  id: FACT.id,
  store: "session",
  session_id: SESSION,
  lane: EDGE,
  first_rev: Rev.make(4),
  last_rev: Rev.make(6),
  said_at: AT,
  text: "user: I moved to Lyon"
}

/** The chat's commands over a memory with one fact and one conversation; notes what is forgotten. */
const opened = (facts: ReadonlyArray<Fact> = [FACT], chunks = facts.length, sessions = 2) =>
  Effect.gen(function* () {
    const forgotten: Array<readonly [Forget, string]> = []
    /** What is said in the conversation after the look. */
    const said: Array<string> = []
    let audited = 0
    const summary = { facts: facts.length, sessions, chunks, summaries: 0, detail: 0 }
    const commands = yield* makeChatMemory.pipe(
      Effect.provide(
        Layer.mergeAll(
          Layer.mock(Audit, { record: () => Effect.sync(() => void (audited += 1)) }),
          Layer.mock(Knowledge, {
            list: () => Effect.succeed(facts),
            trust: (_, name) =>
              Effect.succeed(
                Option.fromUndefinedOr("id" in name && name.id === FACT.id ? { ...FACT, untrusted: false } : undefined)
              ),
            history: (_, name) => Effect.succeed("key" in name && name.key === FACT.key ? facts : [])
          }),
          Layer.mock(MemoryContents, { summary: () => Effect.succeed(summary) }),
          Layer.mock(Recall, {
            search: ({ query, store }) =>
              Effect.succeed({ hits: store === "session" && query === "Lyon" ? [HIT] : [], ranked_by: "words" })
          }),
          Layer.mock(Forgetting, {
            plan: (_, forget) =>
              Effect.sync(() => ({
                facts: forget.type === "fact" ? [FACT] : [],
                sessions:
                  forget.type === "words" && forget.words === "never said"
                    ? []
                    : [{ session_id: SESSION, events: 3 + said.length, archived: false, running: true }]
              })),
            forget: (agent_id, forget, who) => {
              if (forget.type === "words" && forget.words === "the") return new ForgetTooMuch({ events: 30_000 })
              forgotten.push([forget, who])
              return Effect.succeed({
                agent_id,
                forgotten_at: AT,
                facts: 1,
                events: 3,
                chunks: 1,
                vectors: 1,
                texts: 1,
                sessions: [SESSION],
                restarted: true,
                left: ["backups keep it"]
              })
            }
          })
        )
      )
    )
    return { ...commands, forgotten, said, audited: () => audited }
  })

describe("/memory", () => {
  it.effect("takes a fact for true by the number that the same person saw, and says it to the audit", () =>
    Effect.gen(function* () {
      const { audited, memory } = yield* opened()
      assert.include((yield* memory("keep 1", PHONE)).text, "Send /memory to see it")
      assert.include((yield* memory(undefined, PHONE)).text, "/memory keep <number>")
      assert.include((yield* memory("keep 2", PHONE)).text, "There is no fact 2")
      assert.strictEqual(audited(), 0)
      assert.strictEqual((yield* memory("keep 1", PHONE)).text, "I take it for true: Lives in Lyon")
      assert.strictEqual(audited(), 1)
    })
  )

  it.effect("says what the agent knows, each fact on one line", () =>
    Effect.gen(function* () {
      const { memory } = yield* opened()
      const { text } = yield* memory(undefined, PHONE)
      assert.include(text, "user.city: Lives in Lyon (2026-01-02, untrusted)\n")
      assert.include(text, "2 earlier conversations")
      const young = yield* (yield* opened([FACT], 1, 0)).memory(undefined, PHONE)
      assert.notInclude(young.text, "conversation")
      assert.match(young.text, /\n\/memory <words> searches everything, \/forget <words> removes it\.$/u)
      const empty = yield* (yield* opened([])).memory(undefined, PHONE)
      assert.strictEqual(empty.text, "I remember nothing beyond this conversation yet.")
      const talked = yield* (yield* opened([], 1)).memory(undefined, PHONE)
      assert.match(talked.text, /^I remember 2 earlier conversations\./u)
    })
  )

  it.effect("names days and minutes by the person's clock", () =>
    Effect.gen(function* () {
      const { memory } = yield* opened()
      const far = { ...PHONE, zone: "America/Los_Angeles" }
      assert.include((yield* memory(undefined, far)).text, "user.city: Lives in Lyon (2026-01-01, untrusted)\n")
      assert.match((yield* memory("Lyon", far)).text, /^2026-01-01 19:04 \(America\/Los_Angeles\): /u)
    })
  )

  it.effect("finds words with the minute at which they were said", () =>
    Effect.gen(function* () {
      const { memory } = yield* opened()
      assert.strictEqual((yield* memory("Lyon", PHONE)).text, "2026-01-02 03:04 UTC: user: I moved to Lyon")
      assert.strictEqual((yield* memory("Oslo", PHONE)).text, "I remember nothing about that.")
    })
  )
})

describe("/forget", () => {
  it.effect("says what would go, and does it once with a yes from the same chat", () =>
    Effect.gen(function* () {
      const { forget, forgotten } = yield* opened()
      const asked = yield* forget("user.city", PHONE)
      assert.include(asked.text, "The fact user.city: Lives in Lyon")
      assert.include(asked.text, "The text of 3 events in 1 conversation")
      assert.strictEqual((yield* forget("yes", speaker("tablet"))).kind, "refusal")
      const done = yield* forget("Yes", PHONE)
      assert.include(done.text, "Forgotten: 1 fact value and the text of 3 events.")
      assert.include(done.text, "Not forgotten: backups keep it.")
      assert.deepStrictEqual(forgotten, [[{ type: "fact", key: FACT.key! }, "gateway:bot"]])
      assert.strictEqual((yield* forget("yes", PHONE)).kind, "refusal")
      assert.lengthOf(forgotten, 1)
    })
  )

  it.effect("takes other texts as words, and a yes within two minutes", () =>
    Effect.gen(function* () {
      const { forget, forgotten } = yield* opened()
      yield* forget("user.town", PHONE)
      yield* forget("yes", PHONE)
      assert.deepStrictEqual(forgotten[0]?.[0], { type: "words", words: "user.town" })
      yield* forget("the number 4711", PHONE)
      yield* TestClock.adjust("121 seconds")
      const late = yield* forget("yes", PHONE)
      assert.strictEqual(late.kind, "refusal")
      assert.match(late.text, /words again\.$/u)
      assert.lengthOf(forgotten, 1)
    })
  )

  it.effect("shows what matches once more where it is not what the person looked at, and takes a yes to that", () =>
    Effect.gen(function* () {
      const { forget, forgotten, said } = yield* opened()
      assert.include((yield* forget("Lyon", PHONE)).text, "The text of 3 events")
      said.push("Lyon is cold")
      const again = yield* forget("yes", PHONE)
      assert.match(again.text, /^What matches has changed since you looked\..*The text of 4 events.*\/forget yes/su)
      assert.lengthOf(forgotten, 0)
      yield* forget("yes", PHONE)
      assert.lengthOf(forgotten, 1)
    })
  )

  it.effect("takes the yes of nobody else in a group", () =>
    Effect.gen(function* () {
      const { forget, forgotten } = yield* opened()
      yield* forget("user.city", { ...speaker("family"), writer: ResourceName.make("phone") })
      const other = yield* forget("yes", { ...speaker("family"), writer: ResourceName.make("tablet") })
      assert.deepStrictEqual([other.kind, forgotten], ["refusal", []])
    })
  )

  it.effect("does nothing for words that are too short, unknown or too common", () =>
    Effect.gen(function* () {
      const { forget, forgotten } = yield* opened()
      assert.strictEqual((yield* forget("ab", PHONE)).kind, "refusal")
      assert.strictEqual((yield* forget("never said", PHONE)).text, "I remember nothing about that.")
      assert.strictEqual((yield* forget("yes", PHONE)).kind, "refusal")
      yield* forget("the", PHONE)
      assert.include((yield* forget("yes", PHONE)).text, "30000 events hold this")
      assert.lengthOf(forgotten, 0)
    })
  )
})
