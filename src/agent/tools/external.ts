/**
 * A tool that is a manifest and an executable: JSON on standard input and output, the secrets that its manifest names on
 * a descriptor of their own, git's configuration where that of the git identity is among them, and nothing else of the agent's.
 */
import { Effect, Option, Result, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import { Acted } from "#schema/Source.ts"
import { capabilitiesOf, effectOf, LockRequest, shownName, type ToolManifest } from "#schema/Tool.ts"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { sourceOf } from "#src/shared/session/sources.ts"
import { withoutGrantWords } from "#src/shared/image/freeArguments.ts"
import { inputDecoder } from "#src/shared/image/jsonSchema.ts"
import { EVENT_DEPTH_MAX, isDeeperThan } from "#src/shared/text/canonicalJson.ts"
import { type ProcessResult, ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { type CallSecrets, makeToolSecrets } from "#src/agent/settings/toolSecrets.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome, withoutSecrets } from "./Tool.ts"
import { watchSendFolder } from "./sendFolder.ts"
import { keepWholeOutput } from "./wholeOutput.ts"
import { firstPart, lastPart } from "#src/shared/text/placeToCut.ts"

/** The time of a tool with a process beyond the process's own, to kill what is left and to hand over its output. */
export const PROCESS_GRACE_MS = 2000
/** Characters of a failed tool's standard error that the model is shown. */
export const TOOL_STDERR_CHARS_MAX = 4000

const SUMMARY_CHARS = 500
const NO_GIT = { env: {} }

/** An input schema that cannot be checked, so that no input of a model could be let through. */
export class InputSchemaRefused extends Schema.TaggedError<InputSchemaRefused>()("InputSchemaRefused", {
  tool: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `the input_schema of the tool ${this.tool} cannot be used: ${this.problem}`
  }
}

/**
 * The check of a manifest's inputs. Its patterns are left to the tool: one of them could take forever on an input of a model, and the
 * whole agent with it.
 */
const inputSchemaOf = ({ llm }: ToolManifest): Effect.Effect<Schema.Codec<unknown>, InputSchemaRefused> =>
  Effect.fromResult(
    Result.mapError(
      inputDecoder(llm.input_schema as Readonly<Record<string, Schema.Json>>, "ignore"),
      (problem) => new InputSchemaRefused({ tool: llm.name, problem })
    )
  )

const Reply = Schema.Struct({
  status: Schema.optionalKey(Schema.Literals(["success", "error"])),
  summary: Schema.optionalKey(Schema.String),
  output: Schema.optionalKey(Schema.Json),
  untrusted: Schema.optionalKey(Schema.Boolean),
  acted: Schema.optionalKey(Acted)
})
const decodeText = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
/** A value that nests deeper fits no event, and whatever walks through it does so by recursion. */
const decodeJson = (text: string): Option.Option<Schema.Json> =>
  Option.filter(decodeText(text), (value) => !isDeeperThan(value, EVENT_DEPTH_MAX))
const decodeReply = Schema.decodeUnknownOption(Reply)

/** An object with `status` or `output` speaks for itself, its other keys being output; any other value is all output. */
const replyOf = (value: Schema.Json): typeof Reply.Type => {
  const isReply = typeof value === "object" && value !== null && ("status" in value || "output" in value)
  const reply = isReply ? Option.getOrUndefined(decodeReply(value)) : undefined
  if (reply === undefined) return { output: value }
  const rest = Object.entries(value as Schema.JsonObject).filter(([key]) => !Object.hasOwn(Reply.fields, key))
  return reply.output === undefined && rest.length > 0 ? { ...reply, output: Object.fromEntries(rest) } : reply
}

/** The messages of programs that could not reach a network. */
const UNREACHED = /network is unreachable|ENETUNREACH|EAI_AGAIN|could(?: not|n't) resolve|name resolution/iu
const NO_NETWORK = ". It has no network: its manifest does not say runtime.network"

const failureOf = (result: ProcessResult): string | undefined => {
  if (result.timed_out) return "was killed at its timeout"
  if (result.exit_code !== 0) return `ended with ${result.signal ?? `exit code ${result.exit_code}`}`
  return result.stdout.dropped > 0 ? "printed more than a tool may" : undefined
}

const outcomeOf = (
  { llm, runtime }: ToolManifest,
  result: ProcessResult,
  secrets: CallSecrets | undefined
): ToolOutcome => {
  const value = decodeJson(result.stdout.text)
  const failure =
    failureOf(result) ??
    (Option.isNone(value)
      ? `printed something that is not JSON, or JSON that nests deeper than ${EVENT_DEPTH_MAX} levels`
      : undefined)
  const reply = Option.isNone(value)
    ? {}
    : replyOf(secrets === undefined ? value.value : secrets.scrubJson(value.value))
  const isExternal = effectOf({ llm, runtime }) === "external"
  const sources = runtime.untrusted || reply.untrusted === true ? { sources: [sourceOf("tool", llm.name)] } : {}
  const isHidden = runtime.exposure === "none"
  if (failure !== undefined) {
    const cut = !runtime.network && UNREACHED.test(result.stderr.text) ? NO_NETWORK : ""
    const message = `${shownName(llm.name)} ${failure}${cut}`
    const printed = secrets === undefined ? result.stderr.text : secrets.scrub(result.stderr.text)
    const stderr = lastPart(printed, TOOL_STDERR_CHARS_MAX)
    const unknown: Pick<ToolOutcome, "acted"> = isExternal ? { acted: "unknown" } : {}
    const failed = isHidden ? { summary: message } : refusal({ message }, { stderr })
    return { ...failed, status: result.timed_out ? "timeout" : "error", ...sources, ...unknown }
  }
  const { status = "success", summary = `${shownName(llm.name)} ended`, output } = reply
  const { acted = status === "success" ? "accepted" : "unknown" } = reply
  return {
    status,
    summary: firstPart(summary.replace(/\s+/gu, " "), SUMMARY_CHARS),
    ...(output === undefined || isHidden ? {} : { output }),
    ...sources,
    ...(isExternal ? { acted } : {})
  }
}

const lanesOf = ({ runtime }: ToolManifest): Tool["lanes"] => (runtime.exposure === "none" ? "both" : runtime.exposure)

/**
 * The locks of a tool. One that gets secrets runs beside no command of choir.exec: a command has the same user, and could look
 * into its memory (D13).
 */
const locksOf = ({ runtime }: ToolManifest): ReadonlyArray<LockRequest> =>
  runtime.secret_resources.length === 0
    ? runtime.locks
    : [...runtime.locks, LockRequest.make({ resource: "workspace", mode: "S" })]

/** Whether a tool is given the secret of the bound git identity; then git in it may use the identity, and in no other tool. */
const isGivenGit = ({ runtime }: ToolManifest, identity: GitIdentity | undefined): boolean =>
  identity !== undefined && runtime.secret_resources.some((name) => name === "git_identity" || name === identity.secret)

/** The tool of a manifest; `executable` is its checked path. */
export const external = Effect.fnUntraced(function* (manifest: ToolManifest, executable: string) {
  const processes = yield* ProcessRunner
  const workspace = yield* Workspace
  const git = yield* GitAccess
  const settings = yield* AgentSettings
  const given = yield* makeToolSecrets(manifest.runtime.secret_resources)
  const decode = decodeInput(yield* inputSchemaOf(manifest), "of the schema")
  const { prompt_mask, timeout_ms } = manifest.runtime
  const store = yield* SecretStore
  const locks = locksOf(manifest)
  const offline = !manifest.runtime.network
  // Nobody can hold such a tool to its word here, so that people are asked as for one that acts outside.
  const effect = offline && !processes.cutsNetwork ? "external" : effectOf(manifest)

  const run = Effect.fnUntraced(function* (call_id: CallId, stdin: string) {
    const secrets = yield* given.take
    const { env } = isGivenGit(manifest, settings.current().config.git_identity) ? yield* git.forCall(call_id) : NO_GIT
    const command = {
      env,
      command: executable,
      args: [],
      cwd: workspace.root,
      stdin,
      timeout_ms,
      offline: offline && processes.cutsNetwork
    }
    const leave = yield* watchSendFolder(workspace)
    const result = yield* processes.run(
      call_id,
      secrets === undefined ? command : { ...command, secrets: secrets.document }
    )
    const outcome = yield* leave(withoutSecrets(outcomeOf(manifest, result, secrets), store))
    // What a model is not shown, no file of the workspace shows it either.
    return prompt_mask ? outcome : yield* keepWholeOutput(workspace, outcome)
  })

  const tool: Tool = {
    llm: { ...manifest.llm, input_schema: withoutGrantWords(manifest.llm.input_schema) },
    effect,
    lanes: lanesOf(manifest),
    masked: prompt_mask,
    repeatable: manifest.runtime.idempotent,
    capabilities: capabilitiesOf(manifest),
    prepare: Effect.fn("external.prepare")(function* (raw) {
      const stdin = JSON.stringify(yield* decode(raw))
      return {
        locks,
        timeout_ms: timeout_ms + PROCESS_GRACE_MS + processes.turnMs,
        run: ({ call_id }) => Effect.catch(run(call_id, stdin), (error) => Effect.succeed(refusal(error)))
      }
    })
  }
  return tool
})
