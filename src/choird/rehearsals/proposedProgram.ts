/** Whether the program of a proposed tool may run before anybody approved it, and its files. Pure. */
import { Result } from "effect"
import type { ProgramTask } from "#schema/ContainedTrial.ts"
import { effectOf, type ToolManifest } from "#schema/Tool.ts"
import type { ImagePlan } from "#src/choird/repos/Merge.ts"
import { isHeld } from "#src/choird/repos/Tree.ts"
import { toolExecutable } from "#src/shared/image/toolManifest.ts"

type WrittenProgram = NonNullable<ProgramTask["program"]>

/** Where an image has the tools of an agent's own repository, to which alone an agent proposes. */
const FOLDER = "tools/agent/"

/** Why a program does not run for a rehearsal: it may do nothing outside, and gets neither network nor secrets. */
export const programProblem = (which: "its" | "today's", manifest: ToolManifest | undefined): string | undefined => {
  if (manifest === undefined) return `${which} manifest is missing`
  const { network, secret_resources } = manifest.runtime
  if (effectOf(manifest) === "external") return `${which} manifest says that it acts outside`
  if (network) return `${which} manifest wants the network`
  return secret_resources.length > 0 ? `${which} manifest wants secrets` : undefined
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
