/** A Postgres server that stops for as long as it likes, while an agent crashes (R3). */
import { assert, it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Layer, Logger, Option } from "effect"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { beginLife, makeHomeFolder } from "../../support/choird.ts"
import { describePostgres } from "../../support/engines.ts"
import { processesNaming } from "../../support/processes.ts"
import { startPostgres } from "../../support/postgres.ts"
import { makeSkippingClock } from "./skippingClock.ts"

/** A server of its own, since it stops, and a choird on it that tells when it found out about a crash. */
const setUp = Effect.gen(function* () {
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startPostgres({ vector: true })),
    ({ stop }) => Effect.promise(stop)
  )
  const crashed = yield* Deferred.make<void>()
  const heard = Logger.make(({ message }) => {
    if (String(message).startsWith("the agent crashed")) Deferred.doneUnsafe(crashed, Effect.void)
  })
  const { host, port, user } = server
  const place = { host, port, user, database: "postgres", ssl: false }
  const base = yield* Layer.build(Layer.merge(Layer.orDie(Database.layerPostgres(place)), Logger.layer([heard])))
  const run = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideContext(effect, base)
  const home = yield* makeHomeFolder()
  return {
    ...home,
    server,
    crashed: Deferred.await(crashed),
    run,
    lost: Context.get(base, Database).lost,
    life: yield* run(beginLife(home.home))
  }
})

describePostgres("an agent that crashes while its Postgres server is away", () => {
  for (const minutes of [6, 180])
    it.live(`comes back by itself after ${minutes} minutes, and its person is told`, () => {
      const { clock, hurried } = makeSkippingClock()
      return Effect.gen(function* () {
        const { agent_id, life, lost, crashed, run, server, workspace } = yield* setUp
        const first = yield* run(life.lifecycle.start(agent_id, {}))
        yield* run(life.say(agent_id, "hello"))
        yield* run(life.told(agent_id, /^1: hello/u))
        yield* Effect.promise(server.kill)
        for (const pid of processesNaming(`--workspace=${workspace}`)) process.kill(Number(pid), "SIGKILL")
        yield* hurried(minutes * 250, Effect.sleep(`${minutes} minutes`))
        yield* Effect.promise(server.restart)
        yield* hurried(250, crashed)
        yield* life.views.first(({ epoch, status }) => status === "running" && epoch === 2)
        const { text } = yield* run(life.told(agent_id, /database did not answer/u))
        const told = Number(/for (\d+) min/u.exec(text)?.[1])
        assert.approximately(told, minutes, 2 + minutes / 20)
        yield* run(life.say(agent_id, "again"))
        yield* run(life.told(agent_id, /^2: again/u))
        const latest = life.within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id)))
        const { epoch, session_id, status } = Option.getOrThrow(yield* latest)
        assert.strictEqual<string | null>(session_id, first.session_id)
        assert.deepStrictEqual({ epoch, status }, { epoch: 2, status: "active" })
        assert.isTrue(Option.isNone(yield* Effect.timeoutOption(lost, 0)))
      }).pipe(Effect.scoped, Effect.provideService(Clock.Clock, clock))
    })
})
