import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, Schedule } from "effect"
import { afterAll } from "vitest"
import { startEngine, stopEngine, WITHOUT_RULES, whyNoEngine } from "../../support/docker.ts"
import { dockerSuite } from "./dockerRig.ts"

const reason = whyNoEngine("engine restarts")
/** An engine of this suite's own, which others do not miss while it is away. */
const state = "/var/lib/choir-docker-restart"
const start = (...dockerd: ReadonlyArray<string>) =>
  startEngine({
    state,
    bridge: "choir-test1=10.214.0.1/24",
    pool: "10.214.64.0/18",
    dockerd: [WITHOUT_RULES, ...dockerd]
  })
const stop = () => stopEngine(state)
const socket = reason === undefined ? start("--live-restore") : ""
const STOP_MS_MAX = 60_000
// Before the suite's own, which is therefore done while the engine still answers.
afterAll(() => {
  if (reason === undefined) stop()
}, STOP_MS_MAX)
const { containers, inside, started } = dockerSuite(socket)

describe.skipIf(reason !== undefined)("an engine that restarts", { timeout: 300_000 }, () => {
  it.live(
    "with live-restore leaves its agents alone, which are heard before and after, and killed when they should",
    () =>
      Effect.gen(function* () {
        const { agent, container, runtime } = yield* started()
        stop()
        assert.strictEqual(yield* agent.sh("echo alive"), "alive")
        assert.match((yield* runtime.status).warnings.join(), /does not answer/u)
        start("--live-restore")
        assert.strictEqual(yield* agent.sh("echo alive"), "alive")
        // A busy machine's engine takes its time for its first answers.
        const heard = Effect.map(runtime.status, ({ warnings }) => !/does not answer/u.test(warnings.join()))
        const back = Effect.repeat(heard, { until: (is) => is, schedule: Schedule.spaced("200 millis") })
        assert.isTrue(Option.isSome(yield* Effect.timeoutOption(back, "2 minutes")))
        assert.isTrue(Option.isNone(yield* Effect.timeoutOption(container.exit, 0)))
        yield* Effect.forkScoped(agent.ask("setTimeout(() => process.exit(7), 0)"))
        assert.deepStrictEqual(yield* container.exit, { code: 7, signal: null, reason: "exited" })
        yield* container.kill
        assert.deepStrictEqual(containers(), [])
      }).pipe(inside)
  )

  it.live("without it takes its agents along, which is seen without it; the next start waits for it (R7, R8)", () =>
    Effect.gen(function* () {
      stop()
      start()
      const { container, runtime, spec, connected } = yield* started()
      stop()
      const exit = yield* Effect.timeoutOption(container.exit, "1 minute")
      assert.isTrue(Option.isSome(exit))
      yield* container.kill
      const next = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(runtime.start({ ...spec, epoch: 2 }), connected))
      )
      yield* Effect.yieldNow
      assert.isUndefined(next.pollUnsafe())
      start()
      yield* Fiber.join(next)
      assert.deepStrictEqual(containers(), [])
    }).pipe(inside)
  )
})
