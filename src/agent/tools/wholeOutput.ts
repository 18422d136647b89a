/** Where all of an output goes that is too long for a prompt or its event: a file of the workspace, which choir.fs.read can show (R48). */
import { createHash } from "node:crypto"
import { Effect, type Schema } from "effect"
import { isDeeperThan } from "#src/shared/text/canonicalJson.ts"
import { inlineResult, jsonBytes, TOOL_RESULT_BYTES_MAX } from "#src/agent/model/prompt/inlineResult.ts"
import { resultFile, WHOLE_OUTPUT_BYTES_MAX, wholeOutputNote } from "#src/agent/model/prompt/toolText.ts"
import type { Workspace } from "#src/agent/workspace/Workspace.ts"
import type { ToolOutcome } from "./Tool.ts"

/** Long results that are kept in files of the workspace; the oldest go first (R48). */
export const RESULT_FILES_MAX = 64
/** The limit of these files together, in bytes. */
const RESULT_FILES_BYTES_MAX = 64 * 1024 * 1024

/** Of an event's share, what the words about the file may take. */
const NOTE_BYTES = 512
/** A longer text of an output stands by itself in the file, so that its lines can be asked for. */
const LONG_MEMBER_BYTES = 1024
/** Deeper values are written without line breaks, since their indentation would be most of the file. */
const INDENTED_LEVELS_MAX = 8

type Members = Readonly<Record<string, Schema.Json>>

const isObject = (output: Schema.Json): output is Members =>
  typeof output === "object" && output !== null && !Array.isArray(output)

/** An object whose long members are all texts, as a command's output is: the short ones in a line, then each text under its name. */
const sectionsOf = (output: Schema.Json): string | undefined => {
  if (typeof output === "string") return output
  if (!isObject(output)) return undefined
  const short: Array<readonly [string, Schema.Json]> = []
  const texts: Array<string> = []
  for (const [name, value] of Object.entries(output)) {
    if (jsonBytes(value) <= LONG_MEMBER_BYTES) short.push([name, value])
    else if (typeof value === "string") texts.push(`==> ${name} <==\n${value}`)
    else return undefined
  }
  return texts.length === 0 ? undefined : [JSON.stringify(Object.fromEntries(short)), ...texts].join("\n")
}

const fileOf = (output: Schema.Json) => {
  const text = sectionsOf(output)
  const bytes = Buffer.from(
    text ?? JSON.stringify(output, undefined, isDeeperThan(output, INDENTED_LEVELS_MAX) ? 0 : 1)
  )
  const sha256 = createHash("sha256").update(bytes).digest("hex")
  // Named by what it holds: the same result of a repeated call stays the same (E11), and artifact_ref leads to its file.
  return { bytes, sha256, path: resultFile(sha256, text !== undefined) }
}

/** The output as its event holds it, with the words about the file where it has a place for them, or is cut. */
const withNote = (output: Schema.Json, note: string): Schema.Json => {
  const isShort = jsonBytes(output) <= TOOL_RESULT_BYTES_MAX - NOTE_BYTES
  const inline = isShort ? output : inlineResult(output, TOOL_RESULT_BYTES_MAX - NOTE_BYTES)
  if (isObject(inline)) return Object.fromEntries([...Object.entries(inline), ["whole_output", note]])
  return isShort ? inline : `${typeof inline === "string" ? inline : JSON.stringify(inline)}\n[${note}]`
}

/**
 * Keeps all of an output that prompts cannot show whole in a file, cuts it where it does not fit its event, and says in the output
 * which file it is. When the file cannot be written the output stands alone.
 */
export const keepWholeOutput = Effect.fnUntraced(function* (workspace: Workspace["Service"], outcome: ToolOutcome) {
  const { output } = outcome
  if (output === undefined || jsonBytes(output) <= WHOLE_OUTPUT_BYTES_MAX) return outcome
  const { bytes, path, sha256 } = fileOf(output)
  const limits = { files: RESULT_FILES_MAX, bytes: RESULT_FILES_BYTES_MAX }
  return yield* Effect.match(workspace.keep(path, bytes, limits), {
    onSuccess: (): ToolOutcome => ({
      ...outcome,
      output: withNote(output, wholeOutputNote(path)),
      artifact_ref: sha256,
      files: { ...outcome.files, kept: path }
    }),
    onFailure: (): ToolOutcome => ({ ...outcome, output: inlineResult(output) })
  })
})
