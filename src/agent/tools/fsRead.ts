/** choir.fs.read: a file of the workspace, or some of its lines; a picture; of a folder its entries. */
import { Effect, Schema } from "effect"
import { counted } from "#src/shared/text/counts.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { type Looked, Pictures } from "#src/agent/workspace/Pictures.ts"
import { isSkillPath, type ReadableFiles, readableFiles, SkillFiles } from "#src/agent/workspace/SkillFiles.ts"
import { Workspace, type WorkspaceFile } from "#src/agent/workspace/Workspace.ts"
import { countLines, cutToJsonBytes, isText, lineOffset } from "./fileText.ts"
import { FILE_TOOL_TIMEOUT_MS } from "./guardedWrite.ts"
import { decodeInput, lockToRead, pathRefusal, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

/** Lines that one call reads, and bytes of their text as JSON. */
export const READ_LINES_MAX = 2000
export const READ_BYTES_MAX = 32 * 1024

const LINES_MAX = 1_000_000_000
const LineCount = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LINES_MAX }))

const boundsOf = (lines: string | undefined): ReadonlyArray<number> => lines?.split("-").map(Number) ?? []

const Offered = {
  path: Schema.String.annotate({ description: "In the workspace" }),
  offset: Schema.optionalKey(
    Schema.Int.annotate({ description: "First line; -20: 20 before the end" }).check(
      Schema.isBetween({ minimum: -LINES_MAX, maximum: LINES_MAX }),
      Schema.makeFilter((offset) => offset !== 0 || "lines count from 1, or from the end as -1")
    )
  ),
  limit: Schema.optionalKey(LineCount.annotate({ description: `Lines at most. Default ${READ_LINES_MAX}` }))
}

const Input = Schema.Struct({
  ...Offered,
  head: Schema.optionalKey(LineCount),
  tail: Schema.optionalKey(LineCount),
  lines: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[1-9][0-9]{0,8}-[1-9][0-9]{0,8}$/u, { message: "lines is a-b, from 1, inclusive" })
    )
  )
}).check(
  Schema.makeFilter(({ head, tail, limit, lines, offset }) => {
    const ways = [head, tail, lines, offset ?? limit].filter((way) => way !== undefined)
    if (ways.length > 1) return "give offset and limit alone, or one of head, tail and lines"
    const [first = 1, last = first] = boundsOf(lines)
    return last < first ? { path: ["lines"], issue: "lines ends before it begins" } : undefined
  })
)

/** The lines that are asked for, and no more of them than one call may read. */
const rangeOf = ({ head, limit, lines, offset = 1, tail }: typeof Input.Type, total: number) => {
  const [begin = 1, end = total] = boundsOf(lines)
  const from = tail === undefined ? offset : -tail
  const start = lines === undefined ? (from < 0 ? Math.max(1, total + from + 1) : from) : begin
  const most = Math.min(head ?? limit ?? READ_LINES_MAX, READ_LINES_MAX)
  return { first: start, last: Math.min(end, total, start + most - 1) }
}

const binary = ({ path, bytes, sha256 }: WorkspaceFile): ToolOutcome => ({
  status: "success",
  summary: `${path} is binary, or not UTF-8: ${counted(bytes.length)} bytes. Use a command to show part of it`,
  output: { path, binary: true, bytes: bytes.length, sha256 },
  reads: [{ path, sha256 }]
})

const shownPicture = ({ path, bytes, sha256 }: WorkspaceFile, { picture, problem, words }: Looked): ToolOutcome => ({
  status: "success",
  summary: `${path} is a ${words}${problem === undefined ? "" : `. It ${problem}, or examine it with a program`}`,
  output: { path, binary: true, bytes: bytes.length, sha256 },
  ...(picture === undefined ? {} : { pictures: [picture] }),
  reads: [{ path, sha256 }]
})

const show = (file: WorkspaceFile, input: typeof Input.Type): ToolOutcome => {
  const { path, bytes, sha256 } = file
  const reads = [{ path, sha256 }]
  const lines_total = countLines(bytes)
  const { first, last } = rangeOf(input, lines_total)
  if (first > last && (first > 1 || last > 0)) {
    const lines = lines_total === 1 ? "1 line" : `${counted(lines_total)} lines`
    return { ...refusal({ message: `${path} has ${lines}; there is none at ${input.lines ?? first}` }), reads }
  }
  const whole = Buffer.from(bytes.subarray(lineOffset(bytes, first), lineOffset(bytes, last + 1))).toString("utf8")
  const content = cutToJsonBytes(whole, READ_BYTES_MAX)
  const truncated = content.length < whole.length
  const last_line = truncated ? first + countLines(Buffer.from(content)) - 1 : last
  return {
    status: "success",
    summary: `lines ${first}-${last_line} of ${lines_total} of ${path}${truncated ? ", cut for their size" : ""}`,
    output: { path, content, first_line: first, last_line, lines_total, sha256, truncated },
    reads
  }
}

/** Only files of the workspace have versions that a lane has seen. */
const ofWorkspace = ({ path }: WorkspaceFile, outcome: ToolOutcome): ToolOutcome => {
  if (!isSkillPath(path)) return { ...outcome, files: { shows: [path] } }
  const { reads: _, ...rest } = outcome
  return { ...rest, files: { shows: [] } }
}

/** The paths that a listing tells: the last sign of an entry is of its kind, or of its name. An odd name is spelt in a way that no path has. */
const namesOf = (folder: string, entries: ReadonlyArray<string>): Pick<ToolOutcome, "files"> =>
  entries.some((entry) => entry.startsWith('"'))
    ? {}
    : {
        files: {
          shows: entries
            .flatMap((entry) => [entry.replace(/[/@]$/u, ""), entry])
            .map((name) => (folder === "" ? name : `${folder}/${name}`))
        }
      }

export const fsRead: Effect.Effect<Tool, never, Pictures | Workspace> = Effect.gen(function* () {
  const pictures = yield* Pictures
  const skills = yield* SkillFiles
  const workspace = yield* Workspace
  const decode = decodeInput(Input)

  const shown = (file: WorkspaceFile, input: typeof Input.Type) =>
    isText(file.bytes)
      ? Effect.succeed(show(file, input))
      : Effect.map(pictures.keep(file.bytes), (looked) =>
          looked === undefined ? binary(file) : shownPicture(file, looked)
        )

  const listed = (files: ReadableFiles, path: string) =>
    Effect.match(files.list(path), {
      onSuccess: ({ entries, truncated }): ToolOutcome => ({
        status: "success",
        summary: `${entries.length}${truncated ? " or more" : ""} entries of a folder`,
        output: { path: pathInside(path) ?? (isSkillPath(path) ? path : ""), entries: [...entries], truncated },
        ...(isSkillPath(path) ? { files: { shows: [] } } : namesOf(pathInside(path) ?? "", entries))
      }),
      onFailure: (error) => pathRefusal(error)
    })

  return {
    llm: llmView(
      "choir.fs.read",
      "Read a text file with line numbers, or list a folder. The end says how to read on.",
      Schema.Struct(Offered)
    ),
    effect: "none",
    lanes: "both",
    prepare: Effect.fnUntraced(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: yield* lockToRead(input.path),
        timeout_ms: FILE_TOOL_TIMEOUT_MS,
        run: ({ skill }) => {
          const files = readableFiles(workspace, skills, skill)
          return Effect.matchEffect(files.read(input.path), {
            onSuccess: (file) => Effect.map(shown(file, input), (outcome) => ofWorkspace(file, outcome)),
            onFailure: (error) =>
              error.reason === "folder" ? listed(files, input.path) : Effect.succeed(pathRefusal(error))
          })
        }
      }
    })
  }
})
