/** The problems of a configuration, for people and programs. */
import { plainReason } from "./plainReason.ts"

/** `path` is dotted, from the root of the file; empty where the file as a whole is meant. `line` counts from 1. */
export interface Problem {
  readonly path: string
  readonly reason: string
  readonly line?: number
}

/** A problem at the keys that lead to it, from the root of the file; none where the file as a whole is meant. */
export interface PlacedProblem {
  readonly path: ReadonlyArray<string>
  readonly reason: string
  readonly line?: number
}

const AT = /^\s*at ((?:\[(?:"(?:[^"\\]|\\.)*"|\d+)\])+)(?: line (\d+))?$/u
const SEGMENT = /\[("(?:[^"\\]|\\.)*"|\d+)\]/gu

const keysOf = (path: string): ReadonlyArray<string> =>
  [...path.matchAll(SEGMENT)].map(([, segment = ""]) => String(JSON.parse(segment)))

/** The decoder's words for a key that a schema does not have. */
export const EXCESS = "Expected no excess property"
/** The decoder's words for a key that is not there. */
export const MISSING = "Missing key"

const NAMED = /^[a-z_]+\.[^.]+$/u

/** A key that a schema does not have is unknown where keys are fixed, and badly spelled where they are names. */
const worded = ({ path, reason, ...place }: Problem): Problem => {
  if (reason !== EXCESS) return { path, reason, ...place }
  return NAMED.test(path)
    ? {
        path,
        reason: "an unknown key, or not a name: a-z, then up to 39 of a-z, 0-9 and -; control is reserved",
        ...place
      }
    : { path, reason: "an unknown key", ...place }
}

/** A decoder's text names each problem on a line and its place on the next: ` at ["agents"]["a"]`. */
export const placedProblems = (texts: ReadonlyArray<string>): ReadonlyArray<PlacedProblem> => {
  const problems: Array<PlacedProblem> = []
  for (const text of texts.flatMap((text) => text.split("\n"))) {
    const [, place, line] = AT.exec(text) ?? []
    const last = problems.at(-1)
    if (place !== undefined && last !== undefined)
      problems[problems.length - 1] = {
        ...last,
        path: keysOf(place),
        ...(line === undefined ? {} : { line: Number(line) })
      }
    else if (text.trim() !== "") problems.push({ path: [], reason: text.trim() })
  }
  return problems
}

/** A problem as a decoder words it, so that {@link placedProblems} finds the place. */
export const decoderText = ({ line, path, reason }: PlacedProblem): string =>
  path.length === 0
    ? reason
    : `${reason}\n  at ${path.map((key) => `[${JSON.stringify(key)}]`).join("")}${line === undefined ? "" : ` line ${line}`}`

/** The problems in a decoder's own words. */
export const decoderProblems = (texts: ReadonlyArray<string>): ReadonlyArray<Problem> =>
  placedProblems(texts).map(({ path, ...problem }) => worded({ path: path.join("."), ...problem }))

/** The problems in plain words, which follow the path as in `models.main.api: must be a string`. */
export const problemsOf = (texts: ReadonlyArray<string>): ReadonlyArray<Problem> =>
  decoderProblems(texts).map(({ reason, ...problem }) => ({ ...problem, reason: predicateOf(reason) }))

/** A decoder's words without their subject, which the path is. */
export const predicateOf = (reason: string): string => {
  const plain = plainReason(reason)
  return plain === reason ? reason : plain.replace(/^it /u, "")
}

/** A problem on one line. */
export const problemText = ({ line, path, reason }: Problem): string => {
  const place = line === undefined ? path : `${path} (line ${line})`
  return path === "" ? reason : `${place}: ${reason}`
}
