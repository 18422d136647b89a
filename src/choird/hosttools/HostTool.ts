/** A tool that choird runs for an agent: a strict input, an effect class, a deadline and a handler. */
import { Effect, Option, Schema, type Scope } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import type { CallId } from "#schema/Ids.ts"
import type { ToolStatus } from "#schema/Event.ts"
import type { ToolEffect } from "#schema/Tool.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"

/** The outcome of a run. The output tells the agent and its model about a failure. */
export interface HostOutcome {
  readonly status: ToolStatus
  readonly output: Schema.Json
}

/** An input that does not fit; `problem` names the places, never the values. */
export interface InputRefused {
  readonly _tag: "InputRefused"
  readonly problem: string
}

/** The call that a run is of. */
export interface HostCall {
  readonly call_id: CallId
  /** Whether a person was asked about it, by the session's log. */
  readonly is_asked: boolean
}

/** Work that ends with an outcome, or finds no database. */
export type HostRun = Effect.Effect<HostOutcome, DatabaseAway>

export interface HostTool {
  readonly name: string
  /** The outcome of a tool with an effect is kept by call_id, and the tool never runs twice for one (D3). */
  readonly effect: ToolEffect
  /** The effect of an input that fits, where it is less than the tool's. */
  effectOf?(input: Schema.Json): ToolEffect
  readonly timeout_ms: number
  /** The run for an input that fits. It is interrupted at its timeout and when the epoch of its caller ends, which may also hold what a later run uses. */
  prepare(
    input: Schema.Json,
    caller: Caller,
    epoch?: Scope.Scope,
    call?: HostCall
  ): Effect.Effect<HostRun, InputRefused>
}

interface HostToolSpec<S extends Schema.Decoder<unknown>> extends Pick<HostTool, "name" | "effect" | "timeout_ms"> {
  readonly input: S
  effectOf?(input: S["Type"]): ToolEffect
  run(input: S["Type"], caller: Caller, epoch?: Scope.Scope, call?: HostCall): HostRun
}

/** A failure in words. */
export const failed = (status: Exclude<ToolStatus, "success">, error: string): HostOutcome => ({
  status,
  output: { error }
})

/** A tool whose input is decoded strictly, since it comes from inside a sandbox. */
export const makeHostTool = <S extends Schema.Decoder<unknown>>(spec: HostToolSpec<S>): HostTool => {
  const decode = Schema.decodeUnknownEffect(spec.input, { errors: "all", onExcessProperty: "error" })
  const { effectOf } = spec
  return {
    name: spec.name,
    effect: spec.effect,
    ...(effectOf === undefined
      ? {}
      : {
          effectOf: (input: Schema.Json) =>
            Option.match(Schema.decodeUnknownOption(spec.input)(input), {
              onNone: () => spec.effect,
              onSome: (fitting) => effectOf(fitting)
            })
        }),
    timeout_ms: spec.timeout_ms,
    prepare: (input, caller, epoch, call) =>
      Effect.mapBoth(decode(input), {
        onSuccess: (decoded) => spec.run(decoded, caller, epoch, call),
        onFailure: ({ message }): InputRefused => ({ _tag: "InputRefused", problem: message })
      })
  }
}
