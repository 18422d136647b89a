/**
 * The program of a proposed tool beside today's: whether it may run before anybody approved it, and whether it does worse on the inputs of
 * recorded calls. Pure.
 */
import { Result, type Schema } from "effect"
import type { ProgramTask, TriedTool } from "#schema/ContainedTrial.ts"
import type { ToolStatus } from "#schema/Event.ts"
import { effectOf, type ToolManifest } from "#schema/Tool.ts"
import type { ImagePlan } from "#src/choird/repos/Merge.ts"
import { isHeld } from "#src/choird/repos/Tree.ts"
import { toolExecutable } from "#src/shared/image/toolManifest.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { type Comparison, poorerOutput } from "./compareTrials.ts"

type WrittenProgram = NonNullable<ProgramTask["program"]>

/** Where an image has the tools of an agent's own repository, to which alone an agent proposes. */
const FOLDER = "tools/agent/"

/** Why a program does not run for a rehearsal: it may do nothing outside, and gets neither network nor secrets. */
export const programProblem = (which: "its" | "today's", manifest: ToolManifest | undefined): string | undefined => {
  if (manifest === undefined) return `${which} manifest is missing`
  const { network, secret_resources } = manifest.runtime
  if (effectOf(manifest) === "external") return `${which} manifest says that it acts outside`
  if (network) return `${which} manifest asks for the network`
  return secret_resources.length > 0 ? `${which} manifest asks for secrets` : undefined
}

/** The program of a proposal with the files of its tool. What is still to be compiled, or too large to be read here, does not run. */
export const proposedProgram = (
  manifest: ToolManifest,
  { files }: Pick<ImagePlan, "files">
): Result.Result<WrittenProgram, string> => {
  const { exec_path } = manifest.runtime
  const executable = toolExecutable("agent", exec_path)
  const unit = `${FOLDER}${manifest.llm.name}`
  const own = files.filter(({ path }) => path === unit || path.startsWith(`${unit}/`))
  if (executable === undefined || !own.some(({ path }) => path === `${FOLDER}${executable}`))
    return Result.fail("its program is still to be built")
  const held = own.filter(isHeld)
  if (held.length < own.length) return Result.fail("the proposal does not bring all of its files")
  return Result.succeed({
    manifest,
    executable,
    files: held.map(({ bytes, executable: runs, path }) => ({
      path: path.slice(FOLDER.length),
      executable: runs || path === `${FOLDER}${executable}`,
      base64: Buffer.from(bytes).toString("base64")
    }))
  })
}

/** A recorded call with what both programs make of its input. */
export interface ProgramCall {
  readonly recorded: { readonly status: ToolStatus; readonly output?: Schema.Json }
  readonly today: TriedTool
  readonly proposed: TriedTool
}

type Ran = Extract<TriedTool, { readonly type: "ran" }>
interface BothRan {
  readonly recorded: ProgramCall["recorded"]
  readonly today: Ran
  readonly proposed: Pick<Ran, "output" | "status" | "summary">
}

const same = (one: Schema.Json | undefined, other: Schema.Json | undefined): boolean =>
  canonicalJson(one ?? null) === canonicalJson(other ?? null)

/** "1 of 3 calls" that were compared. */
const counted = (count: number, of: ReadonlyArray<unknown>): string =>
  `${count} of ${of.length} ${of.length === 1 ? "call" : "calls"}`

const outcomeOf = ({ status, summary }: Pick<Ran, "status" | "summary">): string => `${status}: ${summary}`

/** A proposed program that was held back did not do what today's does. */
const ranOf = (tried: TriedTool): Pick<Ran, "output" | "status" | "summary"> =>
  tried.type === "ran" ? tried : { status: "rejected", summary: tried.why }

/**
 * The verdict on the calls of one session. Today's program says which of them can be compared: those that it ends as it did then, since the workspace
 * of the trial is empty. Other values are named only where today's program gives the recorded ones.
 */
export const comparePrograms = (calls: ReadonlyArray<ProgramCall>): Comparison => {
  const repeated = calls.flatMap(({ proposed, recorded, today }): ReadonlyArray<BothRan> =>
    today.type !== "ran" || today.status !== recorded.status ? [] : [{ recorded, today, proposed: ranOf(proposed) }]
  )
  const [first] = calls
  if (repeated.length === 0)
    return {
      verdict: "not_rehearsed",
      reasons: [
        `today's program, in an empty workspace, does not repeat what was recorded${first === undefined ? "" : ` (${outcomeOf(ranOf(first.today))})`}`
      ]
    }
  const failing = repeated.filter(({ proposed, today }) => today.status === "success" && proposed.status !== "success")
  const poorer = repeated.flatMap(({ proposed, today }) =>
    today.status === "success" && proposed.status === "success" ? poorerOutput(today.output, proposed.output) : []
  )
  const worse = [
    ...failing
      .slice(0, 1)
      .map(({ proposed }) => `fails on ${counted(failing.length, repeated)} that worked then: ${outcomeOf(proposed)}`),
    ...new Set(poorer)
  ]
  if (worse.length > 0) return { verdict: "worse", reasons: worse }
  const fixed = repeated.filter(({ proposed, today }) => today.status !== "success" && proposed.status === "success")
  if (fixed.length > 0)
    return { verdict: "better", reasons: [`succeeds on ${counted(fixed.length, repeated)} that failed then`] }
  const other = repeated.filter(
    ({ proposed, recorded, today }) => same(today.output, recorded.output) && !same(today.output, proposed.output)
  )
  return {
    verdict: "same",
    reasons:
      other.length === 0 ? [] : [`gives a different output from the recorded one on ${counted(other.length, repeated)}`]
  }
}
