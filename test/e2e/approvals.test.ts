/** A person decides on what an agent may not do by itself: real processes, choirctl, and deaths in between (D16, D17, D31). */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option, Schedule, type Schema } from "effect"
import type { ApprovalSummary } from "#schema/ApprovalsApi.ts"
import type { ToolStatus } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"

const SEND = 'call ledger.append {"note":"hello"}'

const patiently = <A, E>(look: Effect.Effect<A, E>) =>
  Effect.retry(look, Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(1500)]))

const make = Effect.fnUntraced(function* (approvals: Schema.JsonObject) {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    config: { approvals, heartbeat_interval_ms: 200 }
  })
  const choird = yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const id = session_id as SessionId
  const ctl = (...args: ReadonlyArray<string>) => choirctl(choir.home, ["approval", ...args, "--json"])
  /** The only approval that waits, as choirctl lists it. */
  const waiting = patiently(
    Effect.flatMap(ctl("list"), (ran) => {
      const [found] = ran.code === 0 ? (document(ran) as ReadonlyArray<ApprovalSummary>) : []
      return found === undefined ? Effect.fail("nothing waits yet") : Effect.succeed(found)
    })
  )
  const ledger = () => {
    const file = join(choir.workspace, "ledger")
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []
  }
  /** How the calls of the ledger ended, in order. */
  const outcomes = Effect.map(choir.events(id), (history): ReadonlyArray<ToolStatus> => {
    assert.deepStrictEqual(historyProblems(id, history), [])
    return history.flatMap(({ event }) => (event.event_type === "ToolResultCommitted" ? [event.payload.status] : []))
  })
  const status = (approval_id: string) =>
    Effect.map(ctl("show", approval_id), (ran) => (document(ran) as { readonly status: string }).status)
  return { ...choir, choird, ctl, waiting, ledger, outcomes, status }
})

class Choir extends Context.Service<Choir, Effect.Success<ReturnType<typeof make>>>()("choir/test/AskingChoir") {
  static readonly layer = Layer.effect(Choir, make({ confirm_external: "tainted" }))
}

layer(Choir.layer, { excludeTestServices: true, timeout: LAYER_MS_MAX })("approvals of what is tainted", (it) => {
  it.effect("a tainted call waits, is told to the person once, is approved by choirctl, and runs once", () =>
    Effect.gen(function* () {
      const { api, ctl, ledger, outcomes, params, send, settled, status, waiting } = yield* Choir
      const { inbox_id } = yield* send("tainted-1", `call page.read {}; ${SEND}`)
      const { approval_id, request_type, summary } = yield* waiting
      assert.deepStrictEqual([request_type, summary], ["confirm_tool", 'ledger.append {"note":"hello"}'])
      assert.strictEqual((yield* api.agents.status({ params })).approvals_pending, 1)
      assert.deepStrictEqual(ledger(), [])
      const other = yield* ctl("approve", approval_id, "--hash", "00000000")
      assert.nestedPropertyVal(document(other), "error.type", "CHANGED")
      assert.strictEqual((yield* ctl("approve", approval_id)).code, 0)
      const shown = yield* settled(inbox_id)
      const asked = shown.filter(
        (event) => event.type === "message" && event.text.includes("asks for your approval (number")
      )
      assert.lengthOf(asked, 1)
      assert.lengthOf(ledger(), 1)
      assert.deepStrictEqual(yield* outcomes, ["success", "success"])
      assert.strictEqual(yield* status(approval_id), "done")
      const again = yield* ctl("reject", approval_id)
      assert.strictEqual(again.code, 1)
      assert.nestedPropertyVal(document(again), "error.type", "ALREADY_DECIDED")
    })
  )

  it.effect("a rejected call does not run, and the model is told", () =>
    Effect.gen(function* () {
      const { ctl, ledger, outcomes, send, settled, status, waiting } = yield* Choir
      const before = ledger()
      const { inbox_id } = yield* send("reject-1", SEND)
      const { approval_id } = yield* waiting
      assert.strictEqual((yield* ctl("reject", approval_id, "--reason", "not now")).code, 0)
      yield* settled(inbox_id)
      assert.strictEqual(yield* status(approval_id), "rejected")
      assert.deepStrictEqual(ledger(), before)
      assert.strictEqual((yield* outcomes).at(-1), "rejected")
    })
  )

  it.effect("the wait survives the death of the agent and of choird, and what is approved runs once (D17, R53)", () =>
    Effect.gen(function* () {
      const choir = yield* Choir
      const { choird, ctl, ledger, outcomes, send, settled, status, waiting } = choir
      const first = yield* send("kill-1", SEND)
      const { approval_id } = yield* waiting
      const pid = Option.getOrThrow(yield* choird.agent)
      yield* Effect.sync(() => process.kill(pid, "SIGKILL"))
      assert.strictEqual((yield* ctl("approve", approval_id)).code, 0)
      yield* settled(first.inbox_id)
      assert.lengthOf(ledger(), 2)
      assert.strictEqual(yield* status(approval_id), "done")

      const second = yield* send("kill-2", SEND)
      const later = yield* waiting
      yield* choird.signal("SIGKILL")
      yield* choird.exited
      yield* choir.start
      assert.strictEqual((yield* waiting).approval_id, later.approval_id)
      assert.strictEqual((yield* ctl("approve", later.approval_id)).code, 0)
      yield* settled(second.inbox_id)
      assert.lengthOf(ledger(), 3)
      assert.strictEqual(yield* status(later.approval_id), "done")
      assert.deepStrictEqual(yield* outcomes, ["success", "success", "rejected", "success", "success"])
    })
  )
})

describe("approvals", () => {
  it.live("a call that nobody decides on does not run, and the model is told", () =>
    Effect.gen(function* () {
      const { ctl, ledger, outcomes, send, settled } = yield* make({ confirm_external: "always", timeout_ms: 1000 })
      const { inbox_id } = yield* send("expire-1", SEND)
      const shown = yield* settled(inbox_id)
      assert.isTrue(shown.some((event) => event.type === "message" && event.text.includes("timed out: ledger.append")))
      const all = document(yield* ctl("list", "--all")) as ReadonlyArray<ApprovalSummary>
      assert.deepStrictEqual(
        all.map(({ status }) => status),
        ["expired"]
      )
      assert.deepStrictEqual(ledger(), [])
      assert.deepStrictEqual(yield* outcomes, ["rejected"])
    }).pipe(Effect.scoped)
  )
})
