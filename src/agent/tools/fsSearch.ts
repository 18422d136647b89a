/** choir.fs.search: ripgrep over a file or folder of the workspace, without following links. */
import { Effect, Schema } from "effect"
import { ProcessRunner, type ProcessResult } from "#src/agent/process/ProcessRunner.ts"
import { readableFiles, SkillFiles } from "#src/agent/workspace/SkillFiles.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { decodeInput, lockToRead, refusal, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { PROCESS_GRACE_MS } from "./external.ts"
import { WORKSPACE_FILE_BYTES_MAX } from "#src/agent/workspace/PathRefused.ts"
import { type FoundLine, FoundLines } from "./foundLines.ts"
import { argument, scopeOf, SEARCH_TIMEOUT_MS, searchFailed, shownPath } from "./ripgrep.ts"

/** Matching lines, or names of files, that a search returns, and bytes of their text. */
export const SEARCH_MATCHES_MAX = 100
export const SEARCH_BYTES_MAX = 20 * 1024
/** Lines around each match. */
const SEARCH_CONTEXT_MAX = 20

const Input = Schema.Struct({
  pattern: argument("Regular expression, for each line"),
  path: Schema.optionalKey(Schema.String.annotate({ description: "A file or folder. Default: all" })),
  glob: Schema.optionalKey(argument("Only such files: *.ts or !dist")),
  context: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: SEARCH_CONTEXT_MAX })).annotate({
      description: "Lines around each match"
    })
  ),
  ignore_case: Schema.optionalKey(Schema.Boolean.annotate({ description: "Ignore case" })),
  files_only: Schema.optionalKey(Schema.Boolean.annotate({ description: "Only names of files" }))
})
type Input = typeof Input.Type

/** The arguments of ripgrep: only the pattern and the glob come from the model, and neither can be taken for an option. */
const argvOf = (
  { context = 0, files_only, glob, ignore_case, pattern }: Input,
  where: "." | "-"
): ReadonlyArray<string> => [
  "--json",
  "--sort=path",
  `--max-count=${files_only === true ? 1 : SEARCH_MATCHES_MAX + 1}`,
  `--max-filesize=${WORKSPACE_FILE_BYTES_MAX}`,
  ...(context > 0 && files_only !== true ? [`--context=${context}`] : []),
  ...(ignore_case === true ? ["--ignore-case"] : []),
  ...scopeOf(glob),
  "--",
  pattern,
  where
]

/** Lines up to the limits of matches and bytes. */
const limited = (lines: ReadonlyArray<FoundLine>, files_only: boolean): ReadonlyArray<FoundLine> => {
  let [matches, bytes] = [0, 0]
  const end = lines.findIndex(({ path, text, type }) => {
    matches += type === "match" ? 1 : 0
    bytes += Buffer.byteLength(files_only ? path : path + text)
    return matches > SEARCH_MATCHES_MAX || bytes > SEARCH_BYTES_MAX
  })
  return end === -1 ? lines : lines.slice(0, end)
}

const countOf = (count: number, more: boolean, noun: string): string =>
  count === 1 && !more ? `1 ${noun}` : `${count}${more ? " or more" : ""} ${noun}s`

/** `shown` turns the path that ripgrep printed into one of the workspace. */
const outcomeOf = (
  result: ProcessResult,
  found: FoundLines,
  { files_only = false }: Input,
  shown: (path: string) => string
): ToolOutcome => {
  const kept = limited(found.lines, files_only)
  const truncated = found.lines.length > kept.length || found.is_cut || result.timed_out
  if (kept.length === 0 && (truncated || result.exit_code !== 1)) return searchFailed(result)
  if (files_only) {
    const paths = kept.map(({ path }) => shown(path))
    return { status: "success", summary: countOf(paths.length, truncated, "file"), output: { paths, truncated } }
  }
  const matches = kept.map(({ line, path, text, type }) => ({
    path: shown(path),
    ...(line === undefined ? {} : { line }),
    text,
    ...(type === "context" ? { context: true } : {})
  }))
  const hits = kept.filter(({ type }) => type === "match").length
  return { status: "success", summary: countOf(hits, truncated, "matching line"), output: { matches, truncated } }
}

/** `rg` is the path of the ripgrep binary. */
export const fsSearch = (rg: string): Effect.Effect<Tool, never, ProcessRunner | Workspace> =>
  Effect.gen(function* () {
    const processes = yield* ProcessRunner
    const skills = yield* SkillFiles
    const workspace = yield* Workspace
    const decode = decodeInput(Input)
    const timeout_ms = SEARCH_TIMEOUT_MS

    const searching = (input: Input, where: "." | "-") => {
      const found = new FoundLines()
      const reads = (chunk: Buffer) => found.push(chunk)
      return { found, command: { command: rg, args: argvOf(input, where), timeout_ms, reads } }
    }

    const inFolder = Effect.fnUntraced(function* (input: Input, { call_id, skill }: ToolContext) {
      const { path, cwd } = yield* readableFiles(workspace, skills, skill).folder(input.path ?? ".")
      const { command, found } = searching(input, ".")
      return outcomeOf(yield* processes.run(call_id, { ...command, cwd }), found, input, shownPath(path))
    }, Effect.scoped)

    /** A file comes in by standard input, since ripgrep would follow a link that it is given by name. */
    const inFile = Effect.fnUntraced(function* (input: Input, { call_id, skill }: ToolContext) {
      const { path, bytes } = yield* readableFiles(workspace, skills, skill).read(input.path ?? ".")
      const { command, found } = searching(input, "-")
      const result = yield* processes.run(call_id, { ...command, cwd: workspace.root, stdin: bytes })
      return outcomeOf(result, found, input, () => path)
    })

    return {
      llm: llmView("choir.fs.search", "Search the text of files, without those that git ignores.", Input),
      effect: "none",
      lanes: "both",
      readOnly: true,
      prepare: Effect.fn("fsSearch.prepare")(function* (raw) {
        const input = yield* decode(raw)
        return {
          locks: yield* lockToRead(input.path ?? "."),
          timeout_ms: timeout_ms + PROCESS_GRACE_MS,
          run: (context) =>
            inFile(input, context).pipe(
              Effect.catchIf(
                (error) => error._tag === "PathRefused" && error.reason === "folder",
                () => inFolder(input, context)
              ),
              Effect.catch((error) => Effect.succeed(refusal(error)))
            )
        }
      })
    }
  })
