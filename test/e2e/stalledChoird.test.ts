/** choird as a whole program that stands still, as under a debugger, a full disk or a machine that sleeps, or whose database does (D8). */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SessionId } from "#schema/Ids.ts"
import { describePostgres, migratedDatabase, putDatabase } from "../support/engines.ts"
import { makeInstallation } from "../support/installation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

/** A silence that starved agents on a busy machine do not reach, and less than each of the stalls. */
const config = { heartbeat_interval_ms: 250, crash_detection_threshold_ms: 2500 }

describe("a choird that stands still for three seconds", () => {
  it.live(
    "takes none of its agents for dead, although all of them were silent, and its own stop ends no session (R7, D8)",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const choir = yield* makeInstallation({ endpoint: provider.endpoint, config, database: putDatabase })
        const choird = yield* choir.start
        yield* choir.build
        const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
        yield* choird.signal("SIGSTOP")
        yield* Effect.sleep("3 seconds")
        yield* choird.signal("SIGCONT")
        const { inbox_id } = yield* choir.send("stall-1", "hello")
        yield* choir.settled(inbox_id)
        const show = choir.api.session.show({ params: { id: session_id as SessionId } })
        assert.deepInclude(yield* show, { status: "active", epoch: 1 })
        // Its own stop is no stop of its agents: their sessions stay active, and no model is asked to sum them up.
        const asked = (yield* provider.requests.all).length
        yield* choird.signal("SIGTERM")
        assert.strictEqual(yield* choird.exited, 0)
        assert.strictEqual((yield* provider.requests.all).length, asked)
        yield* choir.start
        assert.deepInclude(yield* show, { status: "active", summary: null })
      }).pipe(Effect.scoped)
  )
})

describePostgres("a database that answers seconds late", () => {
  it.live("costs no agent its life: who waits for choird's answer is not silent, and goes on afterwards (R3, D8)", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise((request) => offlineModel(request, 0))
      const { database, host, port, ssl, user: username } = yield* migratedDatabase
      const choir = yield* makeInstallation({
        endpoint: provider.endpoint,
        config,
        postgres: { url_secret: "postgres-url" },
        secrets: { "postgres-url": `postgres://${username}@${encodeURIComponent(host)}:${port}/${database}` }
      })
      yield* choir.start
      yield* choir.build
      const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
      yield* Effect.flatMap(choir.send("late-1", "hello"), ({ inbox_id }) => choir.settled(inbox_id))
      const sql = yield* PgClient.makeClient({ host, port, database, username, ssl })
      // Each of choird's statements waits for the lock as long as it may, which is longer than an agent may be silent.
      const held = Effect.andThen(sql`LOCK TABLE choir_control.sessions`, Effect.sleep("4 seconds"))
      yield* sql.withTransaction(held)
      yield* Effect.flatMap(choir.send("late-2", "hello"), ({ inbox_id }) => choir.settled(inbox_id))
      const show = choir.api.session.show({ params: { id: session_id as SessionId } })
      assert.deepInclude(yield* show, { status: "active", epoch: 1 })
    }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
  )
})
