/** The problems of a configuration, for people and programs. */

/** `path` is dotted, from the root of the file; empty where the file as a whole is meant. */
export interface Problem {
  readonly path: string
  readonly reason: string
}

const AT = /^\s*at ((?:\[(?:"(?:[^"\\]|\\.)*"|\d+)\])+)$/u
const SEGMENT = /\[("(?:[^"\\]|\\.)*"|\d+)\]/gu

const dotted = (path: string): string =>
  [...path.matchAll(SEGMENT)].map(([, segment = ""]) => String(JSON.parse(segment))).join(".")

const EXCESS = "Expected no excess property"
const NAMED = /^[a-z_]+\.[^.]+$/u

/** A key that a schema does not have is unknown where keys are fixed, and badly spelled where they are names. */
const worded = ({ path, reason }: Problem): Problem => {
  if (reason !== EXCESS) return { path, reason }
  return NAMED.test(path)
    ? {
        path,
        reason: "an unknown key, or not a name: a-z, then up to 39 of a-z, 0-9 and -; control is reserved"
      }
    : { path, reason: "an unknown key" }
}

/** A decoder's text names each problem on a line and its place on the next: ` at ["agents"]["a"]`. */
export const problemsOf = (texts: ReadonlyArray<string>): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  for (const line of texts.flatMap((text) => text.split("\n"))) {
    const place = AT.exec(line)?.[1]
    const last = problems.at(-1)
    if (place !== undefined && last !== undefined) problems[problems.length - 1] = { ...last, path: dotted(place) }
    else if (line.trim() !== "") problems.push({ path: "", reason: line.trim() })
  }
  return problems.map(worded)
}

/** A problem on one line. */
export const problemText = ({ path, reason }: Problem): string => (path === "" ? reason : `${path}: ${reason}`)
