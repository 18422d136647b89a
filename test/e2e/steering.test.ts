import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Schedule } from "effect"
import { choirctl, document } from "../support/choirctl.ts"
import { describeInstallations } from "../support/everyInstallation.ts"
import { SharedChoir } from "../support/SharedChoir.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer, callTools } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"

/** A running agent with two models, and choirctl on its home. */
const start = Effect.gen(function* () {
  const choir = yield* Effect.flatMap(SharedChoir, ({ begin }) => begin)
  const ctl = (...args: ReadonlyArray<string>) => choirctl(choir.home, [...args, "--json"])
  /** What choirctl prints of a signal that it waited for. */
  const signal = (...args: ReadonlyArray<string>) =>
    Effect.map(ctl("session", ...args, "--wait"), (ran) => document(ran) as { readonly rev: number })
  return { ...choir, ctl, signal }
})

const twoModels = ({ endpoint }: { readonly endpoint: string }) => ({
  models: {
    test: { provider: "test", model: "offline-model", endpoint },
    other: { provider: "test", model: "another-model", endpoint }
  },
  heartbeat_interval_ms: 200
})

describeInstallations("steering a session", (place) => {
  const shared = SharedChoir.layer(Effect.map(place, (where) => ({ ...where, config: twoModels })))
  layer(shared, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("tells edge something in the middle of its turn, which the next model call sees", () =>
      Effect.gen(function* () {
        const { events, provider, send, session_id, settled, signal } = yield* start
        const gate = yield* Deferred.make<void>()
        const tool = callTools([{ name: "choir-fs-search", input: { pattern: "nothing" } }])
        yield* provider.script(Effect.andThen(Deferred.await(gate), tool), answer("done"))
        const { inbox_id } = yield* send("inject-1", "do something long")
        yield* provider.requests.at(0)
        const { rev } = yield* signal("inject", session_id, "use the other branch")
        yield* Deferred.succeed(gate, undefined)
        yield* settled(inbox_id)
        const second = JSON.stringify((yield* provider.requests.at(1)).body)
        assert.include(second, "use the other branch")
        const history = yield* events(session_id)
        assert.strictEqual(history[rev - 1]?.event.event_type, "InjectedInstruction")
        assert.deepStrictEqual(historyProblems(session_id, history), [])
      })
    )

    it.effect("ends a compaction in an event, and takes the same words in the chat", () =>
      Effect.gen(function* () {
        const { ctl, events, home, send, session_id, settled, signal } = yield* start
        yield* Effect.flatMap(send("compact-1", "hello"), ({ inbox_id }) => settled(inbox_id))
        const { rev } = yield* signal("compact", session_id)
        const history = yield* events(session_id)
        assert.strictEqual(history[rev - 1]?.event.event_type, "CompactionCommitted")
        const chat = yield* choirctl(home, ["chat", "demo"], { stdin: "/compact\n/cores\n/cancel\n" })
        assert.match(chat.out, /is being summarised\.\nnotice: No jobs are running\.\nnotice: Nothing is running\./u)
        const gone = yield* ctl("session", "core-cancel", session_id, "nobody")
        assert.strictEqual(gone.code, 1)
        assert.nestedPropertyVal(document(gone), "error.type", "NO_SUCH_JOB")
      })
    )

    it.effect("cancels a job that works, and switches the model of the next call", () =>
      Effect.gen(function* () {
        const { api, ctl, params, provider, send, session_id, settled, signal } = yield* start
        const { inbox_id } = yield* send("job-1", "job slow: run sleep 30")
        yield* Effect.retry(
          Effect.flatMap(api.sessions.cores({ params: { id: session_id } }), ({ length }) =>
            length === 1 ? Effect.void : Effect.fail("not yet")
          ),
          Schedule.spaced("20 millis")
        )
        const { rev } = yield* signal("core-cancel", session_id, "slow")
        assert.isAbove(rev, 0)
        const shown = yield* settled(inbox_id)
        assert.isTrue(shown.some((event) => event.type === "message" && event.kind === "report"))

        const set = yield* ctl("model", "set", "demo", "--llm", "other")
        assert.nestedInclude(document(set), { llm: "other", core_llm: "other", default_llm: "test" })
        const used = Effect.flatMap(api.agents.models({ params }), ({ in_use }) =>
          in_use ? Effect.void : Effect.fail("not yet")
        )
        yield* Effect.retry(used, Schedule.spaced("20 millis"))
        yield* provider.script(answer("hello from another"))
        yield* Effect.flatMap(send("model-1", "hello"), (sent) => settled(sent.inbox_id))
        const requests = yield* provider.requests.all
        assert.nestedPropertyVal(requests.at(-1), "body.model", "another-model")

        yield* api.agents.stop({ params })
        const stopped = yield* ctl("session", "inject", session_id, "x")
        assert.nestedPropertyVal(document(stopped), "error.type", "NOT_RUNNING")
        assert.strictEqual((yield* ctl("session", "inject", "zzzzzzzzzzzzzzzz", "x")).code, 1)
      })
    )
  })
})
