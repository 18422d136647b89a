/** `/stop` in an installation: a model that does not come to an end, and the person who waits for it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import type { ApprovalSummary } from "#schema/ApprovalsApi.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { SharedChoir } from "../support/SharedChoir.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"

const start = Effect.flatMap(SharedChoir, ({ begin }) => begin)
const choir = SharedChoir.layerOn({
  config: { approvals: { confirm_external: "always" }, heartbeat_interval_ms: 200 }
})

layer(choir, { excludeTestServices: true, timeout: LAYER_MS_MAX })("stopping a turn", (it) => {
  it.effect("ends a model call that hangs by /stop of the console chat, and the next message is answered", () =>
    Effect.gen(function* () {
      const { provider, session_id, ...choir } = yield* start
      yield* provider.script(Effect.never, answer("hello again"))
      const { inbox_id } = yield* choir.send("stop-1", "think hard")
      yield* provider.requests.at(0)
      const stopped = yield* choirctl(choir.home, ["chat", "demo"], { stdin: "/stop\n" })
      assert.match(stopped.out, /Stopping\./u)
      const shown = yield* choir.settled(inbox_id)
      assert.deepStrictEqual(
        shown.flatMap((event) => (event.type === "message" && event.kind === "stopped" ? [event.text] : [])),
        ["Stopped."]
      )
      const nothing = yield* choirctl(choir.home, ["chat", "demo"], { stdin: "/stop\n/cancel\n" })
      assert.match(nothing.out, /Nothing is running\.[^]*Nothing is running\./u)
      const gone = yield* choirctl(choir.home, ["session", "stop", session_id, "--json"])
      assert.strictEqual(gone.code, 1)
      const next = yield* choir.send("stop-2", "hello")
      const answered = yield* choir.settled(next.inbox_id)
      assert.isTrue(answered.some((event) => event.type === "message" && event.text === "hello again"))
      assert.deepStrictEqual(historyProblems(session_id, yield* choir.events(session_id)), [])
    })
  )

  it.effect(
    "a turn that waits for an approval lets another message be answered, and then ends with its own reply",
    () =>
      Effect.gen(function* () {
        const { session_id, ...choir } = yield* start
        const approval = (...args: ReadonlyArray<string>) => choirctl(choir.home, ["approval", ...args, "--json"])
        const first = yield* choir.send("wait-1", 'call ledger.append {"note":"hello"}')
        const waiting = yield* Effect.retry(
          Effect.flatMap(approval("list"), (ran) => {
            const [found] = document(ran) as ReadonlyArray<ApprovalSummary>
            return found === undefined ? Effect.fail("nothing waits yet") : Effect.succeed(found)
          }),
          Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(600)])
        )
        const second = yield* choir.send("wait-2", "good morning")
        const between = yield* choir.settled(second.inbox_id)
        const replies = (shown: typeof between) =>
          shown.flatMap((event) => (event.type === "message" && event.kind === "reply" ? [event.in_reply_to] : []))
        assert.deepStrictEqual(replies(between), [second.inbox_id])
        assert.strictEqual((yield* approval("approve", waiting.approval_id)).code, 0)
        assert.include(replies(yield* choir.settled(first.inbox_id)), first.inbox_id)
        const history = yield* choir.events(session_id)
        assert.deepStrictEqual(
          history.flatMap(({ event }) => (event.event_type === "ToolResultCommitted" ? [event.payload.status] : [])),
          ["success"]
        )
        assert.deepStrictEqual(historyProblems(session_id, history), [])
      })
  )
})
