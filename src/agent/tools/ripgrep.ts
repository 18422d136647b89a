/** Runs of ripgrep over the workspace: the arguments that all have, and the message when one fails. */
import { Schema } from "effect"
import type { ProcessResult } from "#src/agent/process/ProcessRunner.ts"
import { TOOL_STDERR_CHARS_MAX } from "./external.ts"
import { refusal, type ToolOutcome } from "./Tool.ts"

/** How long a search may take (E12). */
export const SEARCH_TIMEOUT_MS = 30_000
/** Characters of a search's pattern and of its glob. */
const SEARCH_PATTERN_CHARS_MAX = 4096

/** A text that becomes an argument of a program. */
export const argument = (description: string) =>
  Schema.NonEmptyString.annotate({ description }).check(
    Schema.isMaxLength(SEARCH_PATTERN_CHARS_MAX),
    Schema.makeFilter((text) => !text.includes("\0") || "it holds a NUL byte")
  )

/** It follows no link and leaves out ignored files, git's own and the staging area. A glob cannot be taken for an option. */
export const scopeOf = (glob: string | undefined): ReadonlyArray<string> => [
  "--no-config",
  "--no-follow",
  "--one-file-system",
  "--hidden",
  "--no-ignore-global",
  "--no-ignore-parent",
  "--no-require-git",
  ...(glob === undefined ? [] : [`--glob=${glob}`]),
  "--glob=!.git",
  "--glob=!.choirtmp"
]

/** The outcome of a search that did not run to its end and found nothing. */
export const searchFailed = (result: ProcessResult): ToolOutcome => {
  const why = result.timed_out ? "it took too long; give a path or a glob" : result.stderr.text
  return refusal({
    message: `the search failed: ${why.slice(0, TOOL_STDERR_CHARS_MAX) || "its output is too large"}`
  })
}

/** The path of a workspace that a program in one of its folders printed. */
export const shownPath =
  (folder: string) =>
  (name: string): string =>
    name.replace(/^\.\//u, folder === "" ? "" : `${folder}/`)
