/**
 * Tools that run in choird (EXECUTE_HOST_TOOL). A lane that is interrupted hangs up and leaves nothing behind in the agent;
 * choird ends the run when the call's result reaches it.
 */
import { Effect, type Schema } from "effect"
import type { BuiltInToolName } from "#schema/BuiltInTool.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import { type LockRequest, shownName, type ToolEffect } from "#schema/Tool.ts"
import { coreOf } from "#src/shared/session/lanes.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane, type HostCall, type HostReply } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { Denied, type Unreachable } from "#src/agent/control/verbAnswer.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"

/** The time of a host tool beyond its own limit, so that its own words on a late answer reach the model. */
export const HOST_CALL_GRACE_MS = 1000

/** Asks choird to run a host tool for a lane. A job proves that it runs, once choird knows that it does (D35). */
export type AskHost = (lane: LaneId, call: HostCall) => Effect.Effect<HostReply, Unreachable | Denied>

export const makeAskHost = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const plane = yield* ControlPlane
  const replication = yield* Replication
  const ask: AskHost = (lane, call) => {
    if (lane === EDGE) return plane.execute(call)
    const core = coreOf(arbiter.state(), lane)
    if (core === undefined)
      return Effect.fail(
        new Denied({ verb: "EXECUTE_HOST_TOOL", type: "NOT_RUNNING", reason: "the job is no longer running" })
      )
    // choird takes a job's word only once it knows that the job runs.
    return Effect.andThen(replication.reached(core.started_rev), plane.execute(call, core.job_id))
  }
  return ask
})

export interface HostToolSpec {
  readonly name: BuiltInToolName
  /** For the model. */
  readonly description: string
  /** choird is sent what this decodes to. */
  readonly input: Schema.Decoder<Schema.Json>
  /** The input as models see it, where that is less. */
  readonly offered?: Schema.Top
  readonly effect: ToolEffect
  readonly lanes: Tool["lanes"]
  readonly locks: ReadonlyArray<LockRequest>
  /** More than choird gives the tool, since the way there and the wait for a connection count. */
  readonly timeout_ms: number
  /** Where an output's text came from, if that is outside. */
  sources(output: Schema.Json): ReadonlyArray<Source>
}

const said = (output: Schema.Json): string | undefined => {
  const error = typeof output === "object" && output !== null && "error" in output ? output["error"] : undefined
  return typeof error === "string" ? error : undefined
}

const outcomeOf = ({ effect, name, sources }: HostToolSpec, { output, status }: HostReply): ToolOutcome => {
  const known = status === "rejected" || status === "cancelled" ? "error" : status
  const summary =
    said(output) ?? (known === "success" ? `${shownName(name)} answered` : `${shownName(name)} ended with ${status}`)
  const acted = known === "success" ? "accepted" : known === "error" ? undefined : "unknown"
  return {
    status: known,
    summary,
    output,
    sources: sources(output),
    ...(effect !== "external" || acted === undefined ? {} : { acted })
  }
}

/** A tool whose run is one request to choird. */
export const hostTool = Effect.fnUntraced(function* (spec: HostToolSpec) {
  const { description, effect, input, lanes, locks, name, offered = input, timeout_ms } = spec
  const ask = yield* makeAskHost
  const llm = llmView(name, description, offered)
  const decode = decodeInput(input)
  const doubt = effect === "none" ? "" : "; whether it took effect is not known"
  const tool: Tool = {
    llm,
    effect,
    lanes,
    prepare: Effect.fn("hostTool.prepare")(function* (raw) {
      const decoded = yield* decode(raw)
      return {
        locks,
        timeout_ms: timeout_ms + HOST_CALL_GRACE_MS,
        run: ({ call_id, lane }) =>
          Effect.match(ask(lane, { tool_name: llm.name, call_id, input: decoded, timeout_ms }), {
            onSuccess: (reply) => outcomeOf(spec, reply),
            onFailure: (error): ToolOutcome =>
              error._tag === "Denied"
                ? refusal(error)
                : {
                    ...refusal({ message: error.message + doubt }),
                    ...(effect === "external" ? { acted: "unknown" } : {})
                  }
          })
      }
    })
  }
  return tool
})
