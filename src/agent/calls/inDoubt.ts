/** The calls of an earlier epoch that had begun: a tool that can find out how one ended does; the others end as unknown. */
import { Effect } from "effect"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { OpenCall } from "#src/shared/session/State.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { isControl, type Tool, withoutSecrets } from "#src/agent/tools/Tool.ts"
import { finishCall, openCalls, resultOf } from "./callOutcomes.ts"
import { ToolRegistry } from "./ToolRegistry.ts"

/** The time to find out how one call ended. The lanes wait for it. */
const SETTLE_MS_MAX = 20_000

const IN_DOUBT =
  "the agent went down while this ran; whether it took effect, once or twice, is not known: check before you do it again, and tell the user"

const REPEATABLE =
  "the agent went down while this ran, and whether it took effect is not known; its manifest says that a second run changes nothing more, so make the call again if you still need it"

interface DoubtfulCall {
  readonly lane: LaneId
  readonly repeatable: boolean
  readonly call: OpenCall
  readonly settle: Tool["settle"]
}

/** The calls in doubt. Calls without an effect are not among them: they run again (D3, R6). */
const doubtfulCalls = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const registry = yield* ToolRegistry
  const state = arbiter.state()
  const lanes = [EDGE, ...[...state.cores.values()].map(({ lane }) => lane)]
  return lanes.flatMap((lane) =>
    openCalls(state, lane)
      .filter(({ effect, stage }) => stage === "committed" && effect !== "none")
      .map((call): DoubtfulCall => {
        const tool = registry.find(lane, call.name)
        if (tool === undefined || isControl(tool)) return { lane, call, settle: undefined, repeatable: false }
        return { lane, call, settle: tool.settle, repeatable: tool.repeatable === true }
      })
  )
})

const closeAsUnknown = ({ call, lane, repeatable }: DoubtfulCall) =>
  finishCall(lane, call, {
    status: "unknown_after_crash",
    summary: repeatable ? REPEATABLE : IN_DOUBT,
    ...(call.effect === "external" ? { acted: "unknown" } : {}),
    duration_ms: 0
  })

/** Closes those that no tool can settle. */
export const closeInDoubt = Effect.flatMap(doubtfulCalls, (calls) =>
  Effect.forEach(
    calls.filter(({ settle }) => settle === undefined),
    closeAsUnknown,
    { discard: true }
  )
)

const settled = Effect.fnUntraced(function* (doubtful: DoubtfulCall, settle: NonNullable<Tool["settle"]>) {
  const { call, lane } = doubtful
  const secrets = yield* SecretStore
  const log = yield* EventLog
  const output = log.get(call.output_rev)
  const said = output.event_type === "ModelOutput" ? output.payload.tool_calls : []
  const input = said.find(({ call_id }) => call_id === call.call_id)?.input
  const found = yield* settle({ lane, call_id: call.call_id, input }).pipe(Effect.timeout(SETTLE_MS_MAX), Effect.result)
  if (found._tag === "Failure") {
    yield* Effect.logWarning(`could not determine the outcome of ${call.name.slice(0, 64)}: ${found.failure.message}`)
    return yield* closeAsUnknown(doubtful)
  }
  return yield* finishCall(lane, call, resultOf(withoutSecrets(found.success, secrets), 0, 0, false))
})

/** Finds out how the others ended, before a lane continues. Heartbeats continue meanwhile. */
export const settleInDoubt = Effect.flatMap(doubtfulCalls, (calls) =>
  Effect.forEach(
    calls,
    (doubtful) => (doubtful.settle === undefined ? Effect.void : settled(doubtful, doubtful.settle)),
    { discard: true, concurrency: "unbounded" }
  )
)
