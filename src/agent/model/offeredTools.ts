/** The tools that a lane's model is offered, for the texts that name some: a job's constraints leave tools out, and a text must not send it to those. */
import { weakMemoize } from "#src/shared/weakMemoize.ts"

/** The names of a lane's tools as its model sees them. */
export type Offered = ReadonlySet<string>

export const MEMORY_QUERY = "choir-memory-query"
export const FS_READ = "choir-fs-read"
export const FS_SEARCH = "choir-fs-search"
export const EXEC = "choir-exec"
export const SKILL_START = "choir-skill-start"
export const SKILL_LIST = "choir-skill-list"

/** A lane is mostly offered the very list of the call before. */
export const offeredOf = weakMemoize(
  (tools: ReadonlyArray<{ readonly name: string }>): Offered => new Set(tools.map(({ name }) => name))
)

/** Whether two lanes, or one lane twice, are offered the same. */
export const isSameOffer = (a: Offered, b: Offered): boolean =>
  a === b || (a.size === b.size && [...a].every((name) => b.has(name)))
