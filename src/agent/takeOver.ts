/** Takes over the acknowledged history page by page, so that a long one is never held as a whole (D9). */
import { Effect } from "effect"
import type { InitHello, InitHelloReply } from "#schema/AgentApi.ts"
import { Arbiter } from "./Arbiter.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { EventLog } from "./EventLog.ts"

/** `first` is the answer to `introduced`; further pages are asked for with the same introduction. */
export const takeOver = Effect.fnUntraced(function* (introduced: InitHello, first: InitHelloReply) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const plane = yield* ControlPlane
  yield* arbiter.restore(first.tail_events)
  let more = first.tail_more
  while (more) {
    const page = yield* plane.hello({ ...introduced, tail_from: log.head() + 1 })
    yield* arbiter.restore(page.tail_events)
    more = page.tail_more
  }
  yield* Effect.logInfo(`epoch ${first.epoch} ${first.status} at revision ${log.head()}`)
})
