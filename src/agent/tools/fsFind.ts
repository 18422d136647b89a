/** choir.fs.find: names of files of the workspace, the last changed first, without following links. */
import { Effect, Schema } from "effect"
import { ProcessRunner, type ProcessResult } from "#src/agent/process/ProcessRunner.ts"
import { readableFiles, SkillFiles } from "#src/agent/workspace/SkillFiles.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { PROCESS_GRACE_MS } from "./external.ts"
import { argument, scopeOf, SEARCH_TIMEOUT_MS, searchFailed, shownPath } from "./ripgrep.ts"
import { decodeInput, lockToRead, pathRefusal, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

/** Names that one call finds. */
export const FIND_NAMES_MAX = 200

const Input = Schema.Struct({
  glob: argument("Such as *.test.ts or src/**/*.ts"),
  path: Schema.optionalKey(Schema.String.annotate({ description: "A folder. Default: all" }))
})

const argvOf = (glob: string, folder: string): ReadonlyArray<string> => [
  "--files",
  "--null",
  "--sortr=modified",
  ...scopeOf(glob, folder),
  "--",
  "."
]

const outcomeOf = (result: ProcessResult, shown: (path: string) => string): ToolOutcome => {
  // Only a name that its NUL follows was printed whole.
  const names = result.stdout.text.split("\0").slice(0, -1)
  const isCut = names.length > FIND_NAMES_MAX || result.stdout.dropped > 0 || result.timed_out
  if (names.length === 0 && (isCut || result.exit_code !== 1)) return searchFailed(result)
  const paths = names.slice(0, FIND_NAMES_MAX).map((name) => shown(name).toWellFormed())
  const count = paths.length === 1 ? "1 file" : `${paths.length}${isCut ? " or more" : ""} files`
  return {
    status: "success",
    summary: `${count}, the last changed first`,
    output: { paths, truncated: isCut },
    files: { shows: paths }
  }
}

/** `rg` is the path of the ripgrep binary. */
export const fsFind = (rg: string): Effect.Effect<Tool, never, ProcessRunner | Workspace> =>
  Effect.gen(function* () {
    const processes = yield* ProcessRunner
    const skills = yield* SkillFiles
    const workspace = yield* Workspace
    const decode = decodeInput(Input)
    return {
      llm: llmView(
        "choir.fs.find",
        "Find files by name, the last changed first, without those that git ignores.",
        Input
      ),
      effect: "none",
      lanes: "both",
      prepare: Effect.fn("fsFind.prepare")(function* (raw) {
        const { glob, path = "." } = yield* decode(raw)
        return {
          locks: yield* lockToRead(path),
          timeout_ms: SEARCH_TIMEOUT_MS + PROCESS_GRACE_MS,
          run: Effect.fnUntraced(
            function* ({ call_id, skill }) {
              const folder = yield* readableFiles(workspace, skills, skill).folder(path)
              const command = {
                command: rg,
                args: argvOf(glob, folder.path),
                cwd: folder.cwd,
                timeout_ms: SEARCH_TIMEOUT_MS
              }
              return outcomeOf(yield* processes.run(call_id, command), shownPath(folder.path))
            },
            Effect.scoped,
            Effect.catch((error) => Effect.succeed(error._tag === "PathRefused" ? pathRefusal(error) : refusal(error)))
          )
        }
      })
    }
  })
