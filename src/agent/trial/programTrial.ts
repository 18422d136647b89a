/** The program of a tool, run on recorded inputs: the image's, or one that nobody has approved yet. It gets no secret, and no network. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { PROGRAM_MS_MAX, PROGRAM_OUTPUT_CHARS_MAX, type ProgramTask } from "#schema/ContainedTrial.ts"
import { CallId, coreLane } from "#schema/Ids.ts"
import { external } from "#src/agent/tools/external.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { imageTool, tryCall } from "./toolTrial.ts"
import { JOB } from "./Trial.ts"

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
export const runProgramTrial = Effect.fn("programTrial.run")(function* (task: ProgramTask) {
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
      output_chars_max: PROGRAM_OUTPUT_CHARS_MAX
    })
  )
}, Effect.scoped)
