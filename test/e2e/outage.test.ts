/**
 * A whole choird whose Postgres server stops while its agent crashes. `CHOIR_TEST_SIZE=full` keeps the server away for so long that
 * the agent's person is told.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { describePostgres } from "../support/engines.ts"
import { makeInstallation } from "../support/installation.ts"
import { startPostgres } from "../support/postgres.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { isFull } from "../support/size.ts"

const AWAY_SECONDS = isFull ? 330 : 8
const LIMIT_MS = isFull ? 900_000 : 300_000

describePostgres("a Postgres server that stops while an agent crashes", () => {
  it.live(
    "needs no hands: the agent comes back in its session and answers",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startPostgres({ vector: true })),
          ({ stop }) => Effect.promise(stop)
        )
        const choir = yield* makeInstallation({
          endpoint: provider.endpoint,
          postgres: { url_secret: "postgres-url" },
          secrets: {
            "postgres-url": `postgres://${server.user}@${encodeURIComponent(server.host)}:${server.port}/postgres`
          }
        })
        const choird = yield* choir.start
        yield* choir.build
        const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
        yield* Effect.flatMap(choir.send("before", "hello"), ({ inbox_id }) => choir.settled(inbox_id))
        const agent = Option.getOrThrow(yield* choird.agent)
        yield* Effect.promise(server.kill)
        process.kill(agent, "SIGKILL")
        const status = yield* choir.api.system.status()
        assert.isFalse(status.postgres.ok)
        // The length of the outage itself, not a wait for something.
        yield* Effect.sleep(`${AWAY_SECONDS} seconds`)
        yield* Effect.promise(server.restart)
        const often = Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(1200)])
        const { inbox_id } = yield* Effect.retry(choir.send("after", "hello again"), often)
        const shown = yield* choir.settled(inbox_id)
        const show = yield* choir.api.session.show({ params: { id: session_id as SessionId } })
        assert.deepInclude(show, { status: "active", epoch: 2 })
        assert.strictEqual((yield* choir.api.system.status()).choird.pid, choird.pid)
        const told = shown.some((event) => event.type === "message" && /did not answer for \d+ min/u.test(event.text))
        assert.strictEqual(told, isFull)
      }).pipe(Effect.scoped),
    LIMIT_MS
  )
})
