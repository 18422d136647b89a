/** choir.fs.search: ripgrep over a file or folder of the workspace, without following links. */
import { Effect, Schema } from "effect"
import { ProcessRunner, type ProcessResult } from "#src/agent/process/ProcessRunner.ts"
import { readableFiles, SkillFiles } from "#src/agent/workspace/SkillFiles.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { decodeInput, lockToRead, pathRefusal, refusal, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { PROCESS_GRACE_MS } from "./external.ts"
import { WORKSPACE_FILE_BYTES_MAX } from "#src/agent/workspace/PathRefused.ts"
import { type FoundLine, FoundLines } from "./foundLines.ts"
import { isExpression, patternArguments } from "./searchPattern.ts"
import { shortLine } from "#src/agent/model/prompt/textParts.ts"
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

/** Where a search looks: the open folder with its path, or a file that comes in. */
interface Place {
  readonly where: "." | "-"
  readonly folder: string
}

/** The arguments that both runs of a search have: only the pattern and the glob come from the model, and neither can be taken for an option. */
const argvOf = (
  { glob, ignore_case, pattern }: Input,
  { folder, where }: Place,
  isText: boolean
): ReadonlyArray<string> => [
  `--max-filesize=${WORKSPACE_FILE_BYTES_MAX}`,
  ...(ignore_case === true ? ["--ignore-case"] : []),
  ...scopeOf(glob, folder),
  ...patternArguments(pattern, isText),
  "--",
  where
]

const shownBy = ({ context = 0, files_only }: Input): ReadonlyArray<string> => [
  "--json",
  "--sort=path",
  `--max-count=${files_only === true ? 1 : SEARCH_MATCHES_MAX + 1}`,
  ...(context > 0 && files_only !== true ? [`--context=${context}`] : [])
]

/** Names of files that match and that git ignores, which a search without a match tells. */
const IGNORED_NAMES_MAX = 5
const IGNORED_NAME_CHARS_MAX = 200
const NAMES_BYTES_MAX = 16 * 1024
/** How long each further look may take, beyond the search itself. */
const FURTHER_LOOK_MS = 5000

const PLAIN_TEXT = "as plain text: nothing matches it as a regular expression"
const NO_EXPRESSION = "as plain text: it is not a valid regular expression"

/** Where nothing was found: the files that match and are left out, since a model takes silence for absence. */
const ignoredNote = (names: ReadonlyArray<string>): string | undefined => {
  if (names.length === 0) return undefined
  const told = names.slice(0, IGNORED_NAMES_MAX).map((name) => shortLine(name, IGNORED_NAME_CHARS_MAX))
  const more = names.length > IGNORED_NAMES_MAX ? " and others" : ""
  return `git ignores files that match: ${told.join(", ")}${more}. Name one, or its folder, as path`
}

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

const noted = (summary: string, note: string | undefined): string =>
  note === undefined ? summary : `${summary}; ${note}`

/** `shown` turns the path that ripgrep printed into one of the workspace. `named` are the paths that a note tells. */
const outcomeOf = (
  result: ProcessResult,
  found: FoundLines,
  { files_only = false }: Input,
  shown: (path: string) => string,
  note?: string,
  named: ReadonlyArray<string> = []
): ToolOutcome => {
  const kept = limited(found.lines, files_only)
  const truncated = found.lines.length > kept.length || found.is_cut || result.timed_out
  if (kept.length === 0 && (truncated || result.exit_code !== 1)) return searchFailed(result)
  if (files_only) {
    const paths = kept.map(({ path }) => shown(path))
    return {
      status: "success",
      summary: noted(countOf(paths.length, truncated, "file"), note),
      output: { paths, truncated, ...(note === undefined ? {} : { note }) },
      files: { shows: [...paths, ...named] }
    }
  }
  const matches = kept.map(({ line, path, text, type }) => ({
    path: shown(path),
    ...(line === undefined ? {} : { line }),
    text,
    ...(type === "context" ? { context: true } : {})
  }))
  const hits = kept.filter(({ type }) => type === "match").length
  return {
    status: "success",
    summary: noted(countOf(hits, truncated, "matching line"), note),
    output: { matches, truncated, ...(note === undefined ? {} : { note }) },
    files: { shows: [...new Set(matches.map(({ path }) => path)), ...named] }
  }
}

/** A search at its place. */
interface Looking extends Place {
  readonly call_id: ToolContext["call_id"]
  readonly shown: (path: string) => string
  readonly started: { readonly cwd: string; readonly stdin?: Uint8Array }
}

/** `rg` is the path of the ripgrep binary. */
export const fsSearch = (rg: string): Effect.Effect<Tool, never, ProcessRunner | Workspace> =>
  Effect.gen(function* () {
    const processes = yield* ProcessRunner
    const skills = yield* SkillFiles
    const workspace = yield* Workspace
    const decode = decodeInput(Input)
    const timeout_ms = SEARCH_TIMEOUT_MS

    /** One run, whose output is read as it comes. */
    const look = Effect.fnUntraced(function* (input: Input, at: Looking, isText: boolean) {
      const found = new FoundLines()
      const result = yield* processes.run(at.call_id, {
        ...at.started,
        command: rg,
        args: [...shownBy(input), ...argvOf(input, at, isText)],
        timeout_ms: isText ? FURTHER_LOOK_MS : timeout_ms,
        reads: (chunk) => found.push(chunk)
      })
      return { found, result }
    })

    const ignored = Effect.fnUntraced(function* (input: Input, at: Looking) {
      if (at.where === "-") return []
      const { stdout } = yield* processes.run(at.call_id, {
        ...at.started,
        command: rg,
        args: ["--files-with-matches", "--null", "--no-ignore", ...argvOf(input, at, false)],
        timeout_ms: FURTHER_LOOK_MS,
        stdout_bytes_max: NAMES_BYTES_MAX
      })
      // Only a name that its NUL follows was printed whole.
      return stdout.text.split("\0").slice(0, -1).map(at.shown)
    })

    const search = Effect.fnUntraced(function* (input: Input, at: Looking) {
      const first = yield* look(input, at, false)
      const failed = first.result.exit_code === 2
      const isDone = first.found.lines.length > 0 || first.result.timed_out || (first.result.exit_code !== 1 && !failed)
      const outcome = outcomeOf(first.result, first.found, input, at.shown)
      if (isDone) return outcome
      if (isExpression(input.pattern)) {
        const second = yield* look(input, at, true)
        if (second.found.lines.length > 0)
          return outcomeOf(second.result, second.found, input, at.shown, failed ? NO_EXPRESSION : PLAIN_TEXT)
      }
      if (failed) return outcome
      const names = yield* ignored(input, at)
      return outcomeOf(first.result, first.found, input, at.shown, ignoredNote(names), names)
    })

    const inFolder = Effect.fnUntraced(function* (input: Input, { call_id, skill }: ToolContext) {
      const { path, cwd } = yield* readableFiles(workspace, skills, skill).folder(input.path ?? ".")
      return yield* search(input, { call_id, where: ".", folder: path, shown: shownPath(path), started: { cwd } })
    }, Effect.scoped)

    /** A file comes in by standard input, since ripgrep would follow a link that it is given by name. */
    const inFile = Effect.fnUntraced(function* (input: Input, { call_id, skill }: ToolContext) {
      const { path, bytes } = yield* readableFiles(workspace, skills, skill).read(input.path ?? ".")
      const started = { cwd: workspace.root, stdin: bytes }
      return yield* search(input, { call_id, where: "-", folder: "", shown: () => path, started })
    })

    return {
      llm: llmView("choir.fs.search", "Search the text of files, without those that git ignores.", Input),
      effect: "none",
      lanes: "both",
      prepare: Effect.fn("fsSearch.prepare")(function* (raw) {
        const input = yield* decode(raw)
        return {
          locks: yield* lockToRead(input.path ?? "."),
          timeout_ms: timeout_ms + 2 * FURTHER_LOOK_MS + PROCESS_GRACE_MS,
          run: (context) =>
            inFile(input, context).pipe(
              Effect.catchIf(
                (error) => error._tag === "PathRefused" && error.reason === "folder",
                () => inFolder(input, context)
              ),
              Effect.catch((error) =>
                Effect.succeed(error._tag === "PathRefused" ? pathRefusal(error) : refusal(error))
              )
            )
        }
      })
    }
  })
