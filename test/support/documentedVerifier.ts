/** The program of docs/log.md, as a person without Choir runs it. */
import { spawnSync } from "node:child_process"
import { documentedProgram, pageText } from "./documentedCommands.ts"

/** What it says of the lines of `choirctl session events --json`. */
export const verifiedByDocs = (session_id: string, lines: ReadonlyArray<string>): string => {
  const program = documentedProgram(pageText("docs/log.md"), "verify.mjs")
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", program, "verify.mjs", session_id],
    { input: `${lines.join("\n")}\n` }
  )
  const refusal = /Error: (.*)/u.exec(String(stderr))?.[1]
  return status === 0 ? String(stdout).trimEnd() : `refused: ${refusal}`
}
