/** choir.fs.search: ripgrep over a file or folder of the workspace, without following links. */
import { Effect, Option, Schema } from "effect"
import { ProcessRunner, type ProcessResult } from "#src/agent/process/ProcessRunner.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { decodeInput, lockOn, refusal, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { PROCESS_GRACE_MS, TOOL_STDERR_CHARS_MAX } from "./external.ts"
import { WORKSPACE_FILE_BYTES_MAX } from "#src/agent/workspace/PathRefused.ts"

/** How long a search may take (E12). */
const SEARCH_TIMEOUT_MS = 30_000
/** Matches that a search returns. */
export const SEARCH_MATCHES_MAX = 200
/** Characters of a matching line that a search returns. */
export const SEARCH_LINE_CHARS_MAX = 400
/** Characters of a search's pattern and of its glob. */
const SEARCH_PATTERN_CHARS_MAX = 4096

const argument = (description: string) =>
  Schema.NonEmptyString.check(Schema.isMaxLength(SEARCH_PATTERN_CHARS_MAX))
    .annotate({ description })
    .check(Schema.makeFilter((text) => !text.includes("\0") || "it holds a NUL byte"))

const Input = Schema.Struct({
  pattern: argument("A regular expression (Rust syntax), matched line by line"),
  path: Schema.optionalKey(Schema.String.annotate({ description: "A file or folder. Default: the whole workspace" })),
  glob: Schema.optionalKey(argument("Only files whose path matches, such as *.ts or !dist"))
})
type Input = typeof Input.Type

const Bytes = Schema.Union([Schema.Struct({ text: Schema.String }), Schema.Struct({ bytes: Schema.String })])

/** One line of ripgrep's JSON output. Lines of other types do not decode, nor does one that was cut. */
const Match = Schema.fromJsonString(
  Schema.Struct({
    type: Schema.Literal("match"),
    data: Schema.Struct({ path: Bytes, lines: Bytes, line_number: Schema.Natural })
  })
)
const decodeMatch = Schema.decodeUnknownOption(Match)

const textOf = (bytes: typeof Bytes.Type): string =>
  "text" in bytes ? bytes.text : Buffer.from(bytes.bytes, "base64").toString("utf8")

/** Nothing of it is the model's but the pattern and the glob, and neither can be taken for an option. */
const argvOf = ({ pattern, glob }: Input, where: "." | "-"): ReadonlyArray<string> => [
  "--json",
  "--no-config",
  "--no-follow",
  "--one-file-system",
  "--hidden",
  "--no-ignore-global",
  "--no-ignore-parent",
  "--no-require-git",
  "--sort=path",
  `--max-count=${SEARCH_MATCHES_MAX + 1}`,
  `--max-filesize=${WORKSPACE_FILE_BYTES_MAX}`,
  ...(glob === undefined ? [] : [`--glob=${glob}`]),
  "--glob=!.git",
  "--glob=!.choirtmp",
  "--",
  pattern,
  where
]

/** `shown` turns the path that ripgrep printed into one of the workspace. */
const outcomeOf = (result: ProcessResult, shown: (path: string) => string): ToolOutcome => {
  const found = result.stdout.text.split("\n").flatMap((line) => Option.toArray(decodeMatch(line)))
  const matches = found.slice(0, SEARCH_MATCHES_MAX).map(({ data }) => ({
    path: shown(textOf(data.path)),
    line: data.line_number,
    text: textOf(data.lines).slice(0, SEARCH_LINE_CHARS_MAX).trimEnd().toWellFormed()
  }))
  const truncated = found.length > matches.length || result.stdout.dropped > 0 || result.timed_out
  if (matches.length === 0 && (truncated || result.exit_code !== 1)) {
    const why = result.timed_out ? "it took too long; give a path or a glob" : result.stderr.text
    return refusal({
      message: `the search failed: ${why.slice(0, TOOL_STDERR_CHARS_MAX) || "its output is too large"}`
    })
  }
  const summary = `${matches.length}${truncated ? " or more" : ""} matching lines`
  return { status: "success", summary, output: { matches, truncated } }
}

/** `rg` is the path of the ripgrep binary. */
export const fsSearch = (rg: string): Effect.Effect<Tool, never, ProcessRunner | Workspace> =>
  Effect.gen(function* () {
    const processes = yield* ProcessRunner
    const workspace = yield* Workspace
    const decode = decodeInput(Input)
    const timeout_ms = SEARCH_TIMEOUT_MS

    const inFolder = Effect.fnUntraced(function* (input: Input, { call_id }: ToolContext) {
      const { path, cwd } = yield* workspace.folder(input.path ?? ".")
      const result = yield* processes.run(call_id, { command: rg, args: argvOf(input, "."), cwd, timeout_ms })
      return outcomeOf(result, (name) => name.replace(/^\.\//u, path === "" ? "" : `${path}/`))
    }, Effect.scoped)

    /** A file comes in by standard input, since ripgrep would follow a link that it is given by name. */
    const inFile = Effect.fnUntraced(function* (input: Input, { call_id }: ToolContext) {
      const { path, bytes } = yield* workspace.read(input.path ?? ".")
      const args = argvOf(input, "-")
      const result = yield* processes.run(call_id, { command: rg, args, cwd: workspace.root, stdin: bytes, timeout_ms })
      return outcomeOf(result, () => path)
    })

    return {
      llm: llmView(
        "choir.fs.search",
        "Search the files of the workspace for a pattern. Ignored files (.gitignore), binary files and links are left out.",
        Input
      ),
      effect: "none",
      lanes: "both",
      readOnly: true,
      prepare: Effect.fn("fsSearch.prepare")(function* (raw) {
        const input = yield* decode(raw)
        return {
          locks: [yield* lockOn(input.path ?? ".", "S")],
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
