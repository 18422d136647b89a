import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { SessionId } from "#schema/Ids.ts"
import { AgentApp } from "#src/choird/listeners/AgentApp.ts"
import { CurrentOpenSession, type OpenSession } from "#src/choird/listeners/OpenSession.ts"
import { SLOT_MS_MAX, WAITING_MAX } from "#src/choird/listeners/RequestQueue.ts"

/** Requests that come at once: nearly as many as a session may send before it queues, and more than that. */
const FLOOD = 140
const MORE = 40

describe("AgentApp", () => {
  it.effect(
    "lets a busy session wait in the queue and refuses more than a few that wait, and answers another one's at once",
    () =>
      Effect.gen(function* () {
        const agents = yield* AgentApp
        const worked: Array<string> = []
        let held = yield* Deferred.make<void>()
        yield* agents.mount(
          Effect.gen(function* () {
            worked.push((yield* CurrentOpenSession)?.session_id ?? "")
            yield* Deferred.await(held)
            return HttpServerResponse.empty()
          })
        )
        const [flood, calm] = yield* Effect.forEach(["00000000000000aa", "00000000000000bb"], (id) =>
          agents.open(SessionId.make(id))
        )
        const ask = (session: OpenSession | undefined) =>
          session === undefined
            ? Effect.die("no session")
            : agents
                .of(session)
                .pipe(
                  Effect.provideService(
                    HttpServerRequest.HttpServerRequest,
                    HttpServerRequest.fromWeb(new Request("http://choird/rpc/HEARTBEAT", { method: "POST" }))
                  ),
                  Effect.scoped,
                  Effect.forkChild({ startImmediately: true })
                )
        const many = (count: number) => Effect.forEach(Array.from({ length: count }), () => ask(flood))

        const first = yield* many(FLOOD)
        assert.strictEqual(worked.length, FLOOD)
        yield* TestClock.adjust(SLOT_MS_MAX)
        yield* Deferred.succeed(held, undefined)
        yield* Effect.forEach(first, Fiber.join)
        held = yield* Deferred.make<void>()
        const then = yield* many(MORE)
        assert.strictEqual(flood?.use.waiting, WAITING_MAX)
        const other = yield* ask(calm)
        assert.strictEqual(worked.at(-1), calm?.session_id)
        yield* Deferred.succeed(held, undefined)
        yield* Fiber.join(other)
        const statuses = (yield* Effect.forEach(then, Fiber.join)).map(({ status }) => status)
        const refused = statuses.filter((status) => status === 429).length
        assert.isAbove(refused, 0)
        assert.strictEqual(worked.length, FLOOD + MORE - refused + 1)
      }).pipe(Effect.provide(AgentApp.layer))
  )
})
