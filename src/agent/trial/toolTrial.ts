/**
 * One call of one tool, outside of every session, with the tool's own check, effect and labels; and the program of a tool, the image's or one
 * that nobody has approved yet, run on recorded inputs without a secret and without a network.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, type Schema } from "effect"
import {
  PROGRAM_MS_MAX,
  TRIAL_OUTPUT_CHARS_MAX,
  type ProgramTask,
  REPORT_OUTPUT_CHARS_MAX,
  REPORT_TEXT_CHARS_MAX,
  type ToolTask,
  type TriedTool
} from "#schema/ContainedTrial.ts"
import { CallId, coreLane, EDGE, type LaneId } from "#schema/Ids.ts"
import { type ToolName, toWireName } from "#schema/Tool.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { external } from "#src/agent/tools/external.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { withSources } from "#src/shared/session/sources.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { isControl, type PreparedCall, type Tool, type ToolOutcome, withoutSecrets } from "#src/agent/tools/Tool.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { JOB } from "./Trial.ts"
import { TrialBroken } from "./TrialChannel.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

const cut = (text: string): string => firstPart(text, REPORT_TEXT_CHARS_MAX)

type Ran = Extract<TriedTool, { readonly type: "ran" }>

const ranOf = (effect: Ran["effect"], outcome: ToolOutcome, duration_ms: number, output_chars_max: number): Ran => {
  const { acted, output, status, summary } = outcome
  const sources = withSources([], outcome.sources ?? [])
  const isLong = output !== undefined && JSON.stringify(output).length > output_chars_max
  return {
    type: "ran",
    effect,
    status,
    summary: cut(isLong ? `${summary} (the output is too long to be shown)` : summary),
    ...(output === undefined || isLong ? {} : { output }),
    ...(sources.length === 0 ? {} : { sources }),
    ...(acted === undefined ? {} : { acted }),
    duration_ms: Math.round(duration_ms)
  }
}

/** Why a person has to agree first; `undefined` for a call that acts nowhere outside. */
const reasonOf = Effect.fnUntraced(function* (effect: Ran["effect"], { confirm }: PreparedCall) {
  if (confirm !== undefined && (yield* confirm) === "new_recipients")
    return "it goes to a recipient that the account does not know"
  return effect === "external" ? "it acts outside this machine" : undefined
})

interface TrialCall {
  readonly lane: LaneId
  readonly call_id: CallId
  readonly input: Schema.Json
  /** A person agreed that it acts outside. */
  readonly confirmed: boolean
  readonly network: boolean
  readonly timeout_ms_max: number
  readonly output_chars_max: number
}

/** Makes one call. One that acts outside is made only where a person agreed. */
const tryCall = Effect.fnUntraced(function* (tool: Tool, call: TrialCall) {
  const secrets = yield* SecretStore
  const { call_id, confirmed, input, lane, network, output_chars_max, timeout_ms_max } = call
  const prepared = yield* Effect.result(tool.prepare(input, lane))
  if (prepared._tag === "Failure") {
    const refused: TriedTool = {
      type: "ran",
      effect: tool.effect,
      status: "rejected",
      summary: cut(prepared.failure.problem),
      duration_ms: 0
    }
    return refused
  }
  const effect = prepared.success.effect ?? tool.effect
  const why = confirmed ? undefined : yield* reasonOf(effect, prepared.success)
  if (why !== undefined) return { type: "asks", why } satisfies TriedTool
  const started = yield* monotonicMs
  const doubt = effect === "external" ? ({ acted: "unknown" } as const) : {}
  const timeout_ms = Math.min(prepared.success.timeout_ms, timeout_ms_max)
  const outcome = yield* prepared.success.run({ lane, call_id, seen: () => undefined, network }).pipe(
    Effect.timeoutOrElse({
      duration: timeout_ms,
      orElse: () =>
        Effect.succeed<ToolOutcome>({
          status: "timeout",
          summary: `it did not end within ${timeout_ms} ms`,
          ...doubt
        })
    })
  )
  return ranOf(effect, withoutSecrets(outcome, secrets), (yield* monotonicMs) - started, output_chars_max)
})

/** The tool of the image, on a lane that has it. */
const imageTool = Effect.fnUntraced(function* (name: ToolName) {
  const registry = yield* ToolRegistry
  const lanes = [EDGE, coreLane(JOB)]
  const lane = lanes.find((each) => registry.find(each, toWireName(name)) !== undefined) ?? EDGE
  const tool = registry.find(lane, toWireName(name))
  if (tool === undefined || isControl(tool))
    return yield* new TrialBroken({ problem: `the agent's program offers no tool ${name} here` })
  return { lane, tool }
})

/** Makes the call of a task. One that acts outside is made only when the task says that a person agreed. */
export const runToolTrial = Effect.fn("toolTrial.run")(function* ({
  confirmed,
  input = {},
  session_id,
  tool: name
}: ToolTask) {
  const { lane, tool } = yield* imageTool(name)
  const call_id = CallId.make(`${session_id}-try`)
  return yield* tryCall(tool, {
    lane,
    call_id,
    input,
    confirmed,
    network: true,
    timeout_ms_max: Infinity,
    output_chars_max: REPORT_OUTPUT_CHARS_MAX
  })
})

/** The tool of a program that is in no image, in a folder that goes with the scope. */
const writtenTool = Effect.fnUntraced(function* ({ executable, files, manifest }: NonNullable<ProgramTask["program"]>) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-program-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  for (const { base64, executable: runs, path } of files) {
    // choird checked the paths; what leaves the folder does not belong to the program.
    if (pathInside(path) !== path) continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), Buffer.from(base64, "base64"), { mode: runs ? 0o755 : 0o644 })
  }
  return yield* external(manifest, join(folder, executable))
})

/** Runs the program of a tool on each input, as if nobody could be asked: one that acts outside, or whose network cannot be cut, does not run. */
export const runProgramTrial = Effect.fn("toolTrial.runProgram")(function* (task: ProgramTask) {
  const { lane, tool } =
    task.program === undefined
      ? yield* imageTool(task.tool)
      : { lane: coreLane(JOB), tool: yield* writtenTool(task.program) }
  return yield* Effect.forEach(task.inputs, (input, index) =>
    tryCall(tool, {
      lane,
      call_id: CallId.make(`${task.session_id}-try${index + 1}`),
      input,
      confirmed: false,
      network: false,
      timeout_ms_max: PROGRAM_MS_MAX,
      output_chars_max: TRIAL_OUTPUT_CHARS_MAX
    })
  )
}, Effect.scoped)
