import { assert } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import type { AgentId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { MIGRATIONS } from "#src/choird/database/Migrations.ts"
import { SessionMemory } from "#src/choird/memory/SessionMemory.ts"
import { SESSION_CHUNKS_MAX } from "#src/choird/memory/sessionDocuments.ts"
import { askForChunksUntil } from "#src/choird/queues/memoryJobs.ts"
import { SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { insertEvents } from "#src/choird/sessions/storedEvents.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import {
  SUMMARY,
  choird,
  drain,
  said,
  append,
  begin,
  end,
  session,
  type Row,
  rows,
  jobs,
  newOne
} from "../../support/endedSessions.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, newAgent, reply, Talk } from "../../support/stores.ts"

/** An event of this moment; others are of long ago. */
const now = (draft: EventDraft) => Object.assign({}, draft, { created_at: new Date().toISOString() })

const texts = (agent_id: AgentId) =>
  Effect.map(rows(agent_id), (found) => found.map(({ text }) => text.split("\n").slice(1)))

describeStores("SessionMemory", (it) => {
  it.effect(
    "makes chunks of what left the window of a running session, and of the rest once it is idle, each once",
    () =>
      Effect.gen(function* () {
        const agent_id = yield* newOne
        yield* Effect.gen(function* () {
          const talk = yield* begin(agent_id, said(1, "first words"), reply(1, "noted"), now(said(2, "second words")))
          const { session_id } = talk.caller
          yield* drain
          assert.deepStrictEqual(yield* texts(agent_id), [])
          const sql = yield* SqlClient.SqlClient
          yield* askForChunksUntil(session_id, 2)
          yield* drain
          assert.deepStrictEqual(yield* texts(agent_id), [["user: first words", "agent: noted"]])
          // The event after it is of long ago: the session is idle.
          yield* append(talk, reply(2, "noted again"))
          yield* drain
          yield* drain
          const all = [
            ["user: first words", "agent: noted"],
            ["user: second words", "agent: noted again"]
          ]
          assert.deepStrictEqual(yield* texts(agent_id), all)
          yield* end(session_id)
          yield* drain
          assert.deepStrictEqual(yield* texts(agent_id), all)
          // What is made again after a forgetting is the same.
          yield* (yield* SessionMemory).again(agent_id, session_id)
          yield* drain
          assert.sameDeepMembers((yield* texts(agent_id)).flat(), [
            "user: first words",
            "agent: noted",
            "user: second words",
            "agent: noted again"
          ])
          assert.deepStrictEqual(yield* sql`SELECT 1 FROM choir_control.memory_jobs WHERE agent_id = ${agent_id}`, [])
        }).pipe(Effect.provide(choird([agent_id])))
      })
  )

  it.effect(
    "makes chunks of a session that has ended, however it ended, in one job that is stored with its status",
    () =>
      Effect.gen(function* () {
        const agent_id = yield* newOne
        yield* Effect.gen(function* () {
          const { caller } = yield* session(agent_id, "I live in Oslo.")
          assert.deepStrictEqual(yield* jobs(agent_id), [{ kind: "chunk", attempts: 0, problem: null, later: false }])
          yield* drain
          assert.deepStrictEqual(yield* jobs(agent_id), [])
          const [row, ...others] = yield* rows(agent_id)
          assert.deepStrictEqual(others, [])
          assert.deepInclude(row, {
            session_id: caller.session_id,
            tier: "mid_term",
            first_rev: 1,
            untrusted: false,
            due: true
          })
          assert.include(row?.text, "user: I live in Oslo.\nagent: noted")
        }).pipe(Effect.provide(choird([agent_id])))
      })
  )

  it.effect("works by itself as soon as a session ends, and lets the new texts be embedded", () =>
    Effect.gen(function* () {
      const agent_id = yield* newOne
      const written = yield* Queue.unbounded<void>()
      const plane = choird([agent_id], {}, undefined, Effect.asVoid(Queue.offer(written, undefined)))
      yield* Effect.gen(function* () {
        yield* Effect.flatMap(SessionMemory, ({ run }) => run)
        yield* session(agent_id, "one")
        yield* Queue.take(written)
        yield* session(agent_id, "two")
        while ((yield* rows(agent_id)).length < 2) yield* Queue.take(written)
        assert.deepStrictEqual(
          (yield* rows(agent_id)).map(({ text }) => text.split("\n")[1]),
          ["user: one", "user: two"]
        )
      }).pipe(Effect.scoped, Effect.provide(plane))
    })
  )

  it.effect("adds to a session that goes on after its end, and says nothing twice", () =>
    Effect.gen(function* () {
      const agent_id = yield* newOne
      yield* Effect.gen(function* () {
        const talk = yield* session(agent_id, "first words")
        const { session_id } = talk.caller
        yield* drain
        yield* (yield* SessionStore).resume(session_id, BINDINGS, "0000000")
        yield* append(talk, said(2, "second words"), reply(2, "noted again"))
        yield* end(session_id)
        yield* drain
        yield* end(session_id)
        yield* drain
        const texts = (yield* rows(agent_id)).map(({ first_rev, text }) => [first_rev, text.split("\n").slice(1)])
        assert.deepStrictEqual(texts, [
          [1, ["user: first words", "agent: noted"]],
          [3, ["agent: noted", "user: second words", "agent: noted again"]]
        ])
      }).pipe(Effect.provide(choird([agent_id])))
    })
  )

  it.effect("does not forget what came while it worked, and says nothing twice of a session that resumed before", () =>
    Effect.gen(function* () {
      const agent_id = yield* newOne
      yield* Effect.gen(function* () {
        const talk = yield* session(agent_id, "first words")
        yield* (yield* SessionStore).resume(talk.caller.session_id, BINDINGS, "0000000")
        yield* append(talk, now(said(2, "second words")))
        yield* drain
        assert.deepStrictEqual(yield* texts(agent_id), [["user: first words", "agent: noted"]])
        yield* end(talk.caller.session_id)
        yield* drain
        assert.deepStrictEqual(yield* texts(agent_id), [["user: first words", "agent: noted"], ["user: second words"]])
      }).pipe(Effect.provide(choird([agent_id])))
    })
  )

  it.effect("loses and doubles nothing when it is killed between two steps, or a transaction fails", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [whole, cut] = [yield* newOne, yield* newOne]
      const memory = { mid_term_sessions: 1 }
      const drafts = Array.from({ length: 350 }, (_, n) => said(n + 1, `message ${n} ${"and words ".repeat(30)}`))
      const fill = (agent_id: AgentId) =>
        Effect.gen(function* () {
          const { session_id } = (yield* begin(agent_id, ...drafts)).caller
          yield* (yield* SessionStore).summarize(session_id, SUMMARY)
          yield* end(session_id)
          yield* session(agent_id, "short")
        })
      const shape = (found: ReadonlyArray<Row>) =>
        found.map(({ first_rev, part, text, tier }) => `${tier} ${first_rev} ${part} ${text}`).toSorted()
      yield* Effect.andThen(fill(whole), drain).pipe(Effect.provide(choird([whole], memory)))
      yield* Effect.provide(fill(cut), choird([cut], memory))
      // Each kind of statement fails once, at every place.
      yield* sql`CREATE TABLE choir_control.fuse (allowed int)`
      yield* sql`GRANT ALL ON SCHEMA choir_control TO public`
      yield* sql`GRANT ALL ON choir_control.fuse TO public`
      yield* sql`CREATE FUNCTION choir_control.blow() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          UPDATE choir_control.fuse SET allowed = allowed - 1;
          IF EXISTS (SELECT 1 FROM choir_control.fuse WHERE allowed < 0) THEN RAISE EXCEPTION 'killed here'; END IF;
          RETURN NULL;
        END $$`
      const table = sql(`${agentSchema(cut)}.memory_documents`)
      yield* sql`INSERT INTO choir_control.fuse VALUES (0)`
      yield* sql`CREATE TRIGGER blow AFTER INSERT OR UPDATE ON ${table} EXECUTE FUNCTION choir_control.blow()`
      let lives = 0
      for (let round = 0; round < 40; round += 1) {
        // The first statement fails in one life, and the next one gets a single step further, however fast it is.
        yield* sql`UPDATE choir_control.fuse SET allowed = 0`
        yield* sql`UPDATE choir_control.memory_jobs SET run_after = '-infinity' WHERE agent_id = ${cut}`
        yield* Effect.provide(drain, choird([cut], memory))
        if ((yield* jobs(cut)).length === 0) break
        assert.include((yield* jobs(cut))[0]?.problem, "killed here", `life ${round}`)
        lives += 1
        yield* sql`UPDATE choir_control.fuse SET allowed = 1`
        yield* sql`UPDATE choir_control.memory_jobs SET run_after = '-infinity' WHERE agent_id = ${cut}`
        const steps = round % 4
        yield* Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(drain, { startImmediately: true })
          for (let n = 0; n < 3 * steps; n += 1) yield* sql`SELECT 1`
          yield* Fiber.interrupt(fiber)
        }).pipe(Effect.provide(choird([cut], memory)))
      }
      yield* sql`UPDATE choir_control.fuse SET allowed = 1000`
      yield* sql`UPDATE choir_control.memory_jobs SET run_after = '-infinity' WHERE agent_id = ${cut}`
      yield* Effect.provide(drain, choird([cut], memory))
      assert.deepStrictEqual(yield* jobs(cut), [])
      assert.isAbove(lives, 3)
      assert.isAbove((yield* rows(whole)).length, 100)
      assert.deepStrictEqual(shape(yield* rows(cut)), shape(yield* rows(whole)))
      yield* sql`DROP FUNCTION choir_control.blow() CASCADE`
      yield* sql`DROP TABLE choir_control.fuse`
    })
  )

  it.effect("lets a broken session wait alone, with its problem, and goes on with the others", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [broken, sound] = [yield* newOne, yield* newOne]
      yield* Effect.gen(function* () {
        const { session_id } = (yield* session(broken, "damaged")).caller
        yield* session(broken, "whole")
        yield* session(sound, "of another agent")
        yield* sql`UPDATE choir_control.session_events SET body = '\\x00'::bytea WHERE session_id = ${session_id} AND rev = 2`
        yield* drain
        const [job, ...others] = yield* jobs(broken)
        assert.deepInclude(job, { kind: "chunk", attempts: 1, later: true })
        assert.include(job?.problem, "stored event 2: its payload is stored in an unknown format")
        assert.deepStrictEqual(others, [])
        assert.strictEqual((yield* rows(broken)).length, 1)
        assert.strictEqual((yield* rows(sound)).length, 1)
      }).pipe(Effect.provide(choird([broken, sound])))
    })
  )

  it.effect(
    "takes events of a later Choir for untrusted ones, and texts that a database refuses for what can be stored",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const agent_id = yield* newOne
        yield* Effect.gen(function* () {
          const talk = yield* begin(
            agent_id,
            said(1, "before"),
            said(2, `nul \0 end ${"\0".repeat(3000)}`),
            reply(2, "after")
          )
          yield* sql`UPDATE choir_control.session_events SET event_type = 'Novelty' WHERE session_id = ${talk.caller.session_id} AND rev = 1`
          yield* end(talk.caller.session_id)
          yield* drain
          assert.deepStrictEqual(yield* jobs(agent_id), [])
          const found = yield* rows(agent_id)
          assert.isTrue(found.every(({ text }) => !text.includes("before")))
          assert.include(found[0]?.text, "nul \uFFFD end")
          assert.isTrue(found.at(-1)?.untrusted)
        }).pipe(Effect.provide(choird([agent_id])))
      })
  )

  it.effect(
    "remembers words that are said again by their newest time, so that a return to an old value is the newest",
    () =>
      Effect.gen(function* () {
        const agent_id = yield* newOne
        yield* Effect.gen(function* () {
          const talk = yield* begin(agent_id, said(1, "Call me Bob."))
          const { session_id } = talk.caller
          for (const [inbox, name] of [
            [2, "Robert"],
            [3, "Bob"]
          ] as const) {
            yield* end(session_id)
            yield* drain
            yield* (yield* SessionStore).resume(session_id, BINDINGS, "0000000")
            yield* append(talk, said(inbox, `Call me ${name}.`))
          }
          yield* end(session_id)
          yield* drain
          const texts = (yield* rows(agent_id)).map(({ text }) => text.split("\n").at(-1))
          assert.strictEqual(texts.at(-1), "user: Call me Bob.")
        }).pipe(Effect.provide(choird([agent_id])))
      })
  )

  it.effect("keeps the same words of a session once, and of a long session the newest", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agent_id = yield* newOne
      yield* Effect.gen(function* () {
        const same = "the same words again ".repeat(60)
        const talk = yield* begin(agent_id, said(1, same), said(2, same.toUpperCase()), said(3, "other words"))
        const { session_id } = talk.caller
        yield* end(session_id)
        yield* drain
        assert.strictEqual((yield* rows(agent_id)).filter(({ text }) => /same words/iu.test(text)).length, 2)
        yield* sql`UPDATE choir_control.sessions
          SET memory_state = jsonb_set(memory_state, '{count}', to_jsonb(${SESSION_CHUNKS_MAX}::int)) WHERE session_id = ${session_id}`
        yield* append(talk, said(4, "newest words"))
        yield* end(session_id)
        yield* drain
        const left = yield* rows(agent_id)
        assert.include(left.at(-1)?.text, "newest words")
        assert.isFalse(left.some(({ first_rev }) => first_rev === 1))
      }).pipe(Effect.provide(choird([agent_id])))
    })
  )

  it.effect(
    "deletes the chunks, the summary and the words that it kept of a session, and makes them of what is left",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const agent_id = yield* newOne
        yield* Effect.gen(function* () {
          const { caller } = yield* session(agent_id, "my pin is 4711", SUMMARY)
          yield* drain
          yield* sql`DELETE FROM choir_control.session_events WHERE session_id = ${caller.session_id}`
          const left = new Talk(caller.session_id, agent_id).commit(said(1, "[forgotten]"), reply(1, "fine"))
          yield* insertEvents(caller.session_id, left.links, left.links[1]!.hash)
          yield* sql`UPDATE choir_control.sessions SET last_rev = 2 WHERE session_id = ${caller.session_id}`
          const memory = yield* SessionMemory
          yield* memory.again(newAgent(), caller.session_id).pipe(Effect.ignoreCause)
          assert.strictEqual((yield* rows(agent_id)).length, 1)
          yield* memory.again(agent_id, caller.session_id)
          assert.deepStrictEqual(yield* rows(agent_id), [])
          yield* drain
          assert.deepStrictEqual(
            (yield* rows(agent_id)).map(({ text }) => text.split("\n").slice(1)),
            [["agent: fine"]]
          )
          const [row] = yield* sql`SELECT summary, memory_state::text LIKE '%4711%' AS kept FROM choir_control.sessions
          WHERE session_id = ${caller.session_id}`
          assert.deepStrictEqual(row, { summary: null, kept: false })
        }).pipe(Effect.provide(choird([agent_id])))
      })
  )

  it.effect("keeps the memory of an archived session, and removes that of a deleted one with its job", () =>
    Effect.gen(function* () {
      const agent_id = yield* newOne
      yield* Effect.gen(function* () {
        const archives = yield* SessionArchives
        const [one, two] = [yield* session(agent_id, "archived"), yield* session(agent_id, "deleted")]
        yield* drain
        yield* archives.archive(one.caller.session_id, "choird")
        yield* end(two.caller.session_id)
        yield* archives.remove(two.caller.session_id, "choird")
        assert.deepStrictEqual(yield* jobs(agent_id), [])
        assert.deepStrictEqual(
          (yield* rows(agent_id)).map(({ session_id }) => session_id),
          [one.caller.session_id]
        )
        yield* drain
        yield* archives.remove(one.caller.session_id, "choird")
        assert.deepStrictEqual(yield* rows(agent_id), [])
      }).pipe(Effect.provide(choird([agent_id])))
    })
  )

  it.effect("gives sessions that ended before there was memory their jobs, the newest of each agent", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agent_id = yield* newOne
      yield* Effect.gen(function* () {
        for (let n = 0; n < 32; n += 1) yield* session(agent_id, `session ${n}`)
        yield* begin(agent_id, said(1, "still runs"))
        yield* sql`DELETE FROM choir_control.memory_jobs`
        yield* sql`ALTER TABLE choir_control.sessions DROP COLUMN memory_state, DROP COLUMN memory_tier`
        yield* MIGRATIONS["0020_session_memory"]
        assert.strictEqual((yield* jobs(agent_id)).length, 30)
        yield* sql`DELETE FROM choir_control.memory_jobs WHERE agent_id <> ${agent_id}`
        yield* drain
        assert.strictEqual((yield* rows(agent_id)).filter(({ tier }) => tier === "mid_term").length, 10)
      }).pipe(Effect.provide(choird([agent_id])))
    })
  )
})
