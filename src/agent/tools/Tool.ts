/** A tool: the model's view, the locks it needs, its effect class and how it runs; and what all tools share. */
import { Effect, Result, Schema } from "effect"
import type { AttachedFile, ConfirmReason } from "#schema/Approval.ts"
import type { Capability } from "#schema/Capability.ts"
import type { CallId, LaneId } from "#schema/Ids.ts"
import type { Picture } from "#schema/Picture.ts"
import type { Acted, Source } from "#schema/Source.ts"
import { capabilitiesOfEffect, LockRequest, type ToolEffect, type ToolLlmView } from "#schema/Tool.ts"
import { BUILT_IN_CAPABILITIES } from "#src/shared/image/builtInTools.ts"
import { fileKey } from "#src/shared/image/lockKey.ts"
import { isSkillPath } from "#src/agent/workspace/SkillFiles.ts"
import type { Command, Outbound, TouchedFiles } from "#src/agent/arbiter/Command.ts"
import { inputProblem } from "./inputProblem.ts"
import type { SecretStore } from "#src/agent/settings/SecretStore.ts"

/** A tool whose whole effect is a commit: it starts, instructs or cancels a job, or moves a skill, and runs nothing. */
export interface ControlTool {
  readonly llm: ToolLlmView
  readonly lanes: "both" | "edge"
  /** Its effect and its result are one batch, which replication never splits (docs/protocol.md, Batches). */
  command(input: unknown, call_id: CallId, lane: LaneId): Effect.Effect<Command, InvalidInput>
}

export type AnyTool = Tool | ControlTool

export const isControl = (tool: AnyTool): tool is ControlTool => "command" in tool

/** Everything that a tool can do. */
export const capabilitiesOfTool = (tool: AnyTool): ReadonlyArray<Capability> =>
  BUILT_IN_CAPABILITIES.get(tool.llm.name) ??
  (isControl(tool) ? [] : (tool.capabilities ?? capabilitiesOfEffect(tool.effect)))

/** A file version as a lane saw it; the base of lost-update protection (E10). */
export interface FileVersion {
  readonly path: string
  readonly sha256: string
}

/** The facts that a run may know of its caller. Everything else it needs, a tool takes when it is made. */
export interface ToolContext {
  readonly lane: LaneId
  readonly call_id: CallId
  /** The skill that the lane is in, whose own files it may read. */
  readonly skill?: string | undefined
  /** The newest version of a file that the lane has read or written, or `undefined` when it has seen none. */
  seen(path: string): string | undefined
  /**
   * Whether the call may reach the network: the lane has read nothing from outside, a person has approved the call, or nobody wants to be
   * asked (`confirm_external` is `never`).
   */
  readonly network: boolean
  /** Whether the outcome has to say in `files.changed` what the run changed, as far as that can be known. */
  readonly compares?: boolean
}

/**
 * A finished run. `error` and `timeout` are outcomes for the model, not failures of Choir; `unknown_after_crash` is
 * choird's status of a run that its own death cut off.
 */
export interface ToolOutcome {
  readonly status: "success" | "error" | "timeout" | "unknown_after_crash"
  /** One line for people. */
  readonly summary: string
  /** JSON for the model. */
  readonly output?: Schema.Json
  /** Shown to models that take images; the summary or the output names them. */
  readonly pictures?: ReadonlyArray<Picture>
  /** SHA-256 of the file that holds all of an output that is cut here, in hex (R48). */
  readonly artifact_ref?: string
  /** Where its text came from, if that is outside. A result with sources is untrusted and taints its lane. */
  readonly sources?: ReadonlyArray<Source>
  /** Of a run that acted outside, or may have. Absent: it is sure that it did not. */
  readonly acted?: Acted
  readonly reads?: ReadonlyArray<FileVersion>
  readonly writes?: ReadonlyArray<{ readonly path: string; readonly before?: string; readonly after: string }>
  /** Its cost, where its price is known. */
  readonly cost_usd?: number
  /** Files that go to the user, with their caption. */
  readonly sends?: Outbound
  /** Words for the model besides. */
  readonly notes?: ReadonlyArray<string>
  /** Files of the workspace that it had to do with; without them it may have been any. */
  readonly files?: TouchedFiles
}

/** The files that a call uses; `reads_unnamed` where there may be others, whose contents nobody can fix beforehand. */
export interface UsedFiles {
  readonly files: ReadonlyArray<AttachedFile>
  readonly reads_unnamed?: true
}

/** A call whose input was decoded: what it locks and how it runs. */
export interface PreparedCall {
  readonly locks: ReadonlyArray<LockRequest>
  readonly timeout_ms: number
  /** Where the effect of this call is not the tool's own. */
  readonly effect?: ToolEffect
  /** Whether edge may make this call while core jobs run although it has an effect: no job uses what it changes (D30). */
  readonly besideJobs?: boolean
  /** The only paths of the workspace that the run may change, each with all below it; absent where it may change any. */
  readonly writes?: ReadonlyArray<string>
  /** It can tell afterwards what it changed, where it may change anything; `foreign` says that its result is from outside in any case. */
  readonly compares?: { readonly foreign: boolean }
  /** Why a person has to see this call before it runs, whatever the lane has read. It may take time, and changes nothing. */
  readonly confirm?: Effect.Effect<ConfirmReason | undefined>
  /** The files that it would hand out or that its command names, for the person who is asked. What `run` uses is the same, or it refuses. */
  readonly files?: Effect.Effect<UsedFiles, InvalidInput>
  /** Interruptible; an interrupt leaves no process and no half-written file behind. */
  run(context: ToolContext): Effect.Effect<ToolOutcome>
}

/** A call that had begun when its agent went down. */
export interface CutCall {
  readonly lane: LaneId
  readonly call_id: CallId
  readonly input: unknown
}

export interface Tool {
  readonly llm: ToolLlmView
  readonly effect: ToolEffect
  /** Lanes that may call it at all; `choir.core.report` is only a core's. */
  readonly lanes: "both" | "edge" | "core"
  /** Whether models see only the status and the summary of its results (`prompt_mask`). */
  readonly masked?: boolean
  /** Everything that it can do; absent, what its effect class lets it do. A built-in tool has those of the table. */
  readonly capabilities?: ReadonlyArray<Capability>
  /** Whether it changes only what the agent itself remembers, so that no person is asked, whatever the lane has read. */
  readonly keepsOwn?: boolean
  /** Whether a second run changes nothing more, by its manifest. A call that a crash cut off may then be made again without a look. */
  readonly repeatable?: boolean
  /** Whether only scripts call it: no model is offered it, and the call of one is refused. */
  readonly ofScripts?: boolean
  /** Whether models are offered it by another name alone (`offeredName`); a call by its own is taken all the same. */
  readonly unlisted?: boolean
  /**
   * Strict on types and keys; fails with a sentence for the model. Without the lane that calls, the effect is the
   * greatest that the input may have.
   */
  prepare(input: unknown, lane?: LaneId): Effect.Effect<PreparedCall, InvalidInput>
  /**
   * The outcome of a call that a crash cut off, where it can be found out. It does nothing a second time: it looks, or asks choird again,
   * which does the work of a call id once.
   */
  settle?(call: CutCall): Effect.Effect<ToolOutcome, { readonly message: string }>
}

/** A tool input that does not fit; `problem` is written for the model. */
export interface InvalidInput {
  readonly _tag: "InvalidInput"
  readonly problem: string
}

export const invalidInput = (problem: string): InvalidInput => ({ _tag: "InvalidInput", problem })

/**
 * Strict on types and keys (docs/tools.md, Built-in tools): a key that is dropped in silence may have been meant to narrow what the call does. The schema of a
 * manifest says itself which further keys it takes. Every problem is reported at once, with its fix.
 */
export const decodeInput = <S extends Schema.Decoder<unknown>>(
  schema: S,
  further_keys: "refused" | "of the schema" = "refused"
): ((input: unknown) => Effect.Effect<S["Type"], InvalidInput>) => {
  const onExcessProperty = further_keys === "refused" ? "error" : "ignore"
  const decode = Schema.decodeUnknownEffect(schema, { errors: "all", onExcessProperty })
  return (input) => Effect.mapError(decode(input), (error) => invalidInput(inputProblem(schema, input, error.message)))
}

/** The lock on a path that a model named; fails where the path cannot be locked. */
export const lockOn = (path: string, mode: LockRequest["mode"]): Effect.Effect<LockRequest, InvalidInput> =>
  Effect.fromResult(
    Result.mapBoth(fileKey(path), {
      onSuccess: (resource) => LockRequest.make({ resource, mode }),
      onFailure: (error) => invalidInput(error.message)
    })
  )

/** The same for a path that is only read: the files of a skill never change, and take no lock. */
export const lockToRead = (path: string): Effect.Effect<ReadonlyArray<LockRequest>, InvalidInput> =>
  isSkillPath(path) ? Effect.succeed([]) : Effect.map(lockOn(path, "S"), (lock) => [lock])

/** A failure in words for the model. Where it repeats what somebody outside said, it names the sources of that. */
export interface Failure {
  readonly message: string
  readonly sources?: ReadonlyArray<Source> | undefined
}

/** An outcome that tells the model what went wrong and what to do. */
export const refusal = (
  { message, sources = [] }: Failure,
  output?: Readonly<Record<string, Schema.Json>>
): ToolOutcome => ({
  status: "error",
  summary: message,
  output: { error: message, ...output },
  ...(sources.length === 0 ? {} : { sources })
})

/** The outcome of a tool that could not use a path: of the files of the workspace it tells the name that may have been meant, if any. */
export const pathRefusal = (error: Failure & { readonly like?: string | undefined }): ToolOutcome => ({
  ...refusal(error),
  files: { shows: error.like === undefined ? [] : [error.like], changed: [] }
})

/** The outcome without the agent's secrets: a tool may find what others wrote, and no result may contain a secret (R32). */
export const withoutSecrets = (
  { output, summary, ...outcome }: ToolOutcome,
  { scrub, scrubJson }: Pick<SecretStore["Service"], "scrub" | "scrubJson">
): ToolOutcome => ({
  ...outcome,
  summary: scrub(summary),
  ...(output === undefined ? {} : { output: scrubJson(output) })
})
