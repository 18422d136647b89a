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

/** Brackets that hold no class of characters: the second end of a range is before its first. */
const isClassless = (glob: string): boolean =>
  (glob.match(/\[[^\]]*\]/gu) ?? []).some((brackets) =>
    [...brackets.matchAll(/([^[\]])-(?=([^[\]]))/gu)].some(([, first = "", last = ""]) => first > last)
  )

/** A glob as ripgrep takes it in a folder, from one that may begin as paths of the workspace do or repeat that folder. */
const withinFolder = (glob: string, folder: string): ReadonlyArray<string> => {
  const root = /^\/workspace(?=\/)/u
  const inside = glob.replace(root, "")
  const bare = inside.replace(/^(?:\.?\/)/u, "")
  const rest = folder !== "" && bare.startsWith(`${folder}/`) ? [`/${bare.slice(folder.length + 1)}`] : []
  return [...(root.test(glob) && rest.length > 0 ? [] : [inside.replace(/^\.\//u, "/")]), ...rest]
}

/** Everything in the folders that a glob names; a name without a folder may be anywhere. */
const contentsOf = (glob: string): string => {
  const name = glob.replace(/\/+$/u, "")
  return `${name.includes("/") ? "" : "**/"}${name}/**`
}

/** The globs that one of a model means: also the name that is spelt like a class of characters, as `[id]`, and what is in a folder of the name. */
const meantGlobs = (glob: string, folder: string): ReadonlyArray<string> => {
  const sign = glob.startsWith("!") ? "!" : ""
  const all = withinFolder(glob.slice(sign.length), folder).flatMap((one) => {
    const literal = one.replaceAll(/[[\]]/gu, String.raw`\$&`)
    const spelt = !/\[[^\]]+\]/u.test(one) ? [one] : isClassless(one) ? [literal] : [one, literal]
    return spelt.flatMap((one) => (one.endsWith("*") ? [one] : [one, contentsOf(one)]))
  })
  // Names of files have either spelling of letters with marks.
  const spellings = all.flatMap((one) => [one, one.normalize("NFC"), one.normalize("NFD")])
  return [...new Set(spellings)].map((one) => sign + one)
}

/** It follows no link and leaves out ignored files, git's own and the staging area. A glob cannot be taken for an option. */
export const scopeOf = (glob: string | undefined, folder: string): ReadonlyArray<string> => [
  "--no-config",
  "--no-follow",
  "--one-file-system",
  "--hidden",
  "--no-ignore-global",
  "--no-ignore-parent",
  "--no-require-git",
  ...(glob === undefined ? [] : meantGlobs(glob, folder).map((one) => `--glob=${one}`)),
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
