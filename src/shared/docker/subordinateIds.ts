/** The ids that this host lets an engine map, by subuid(5) and subgid(5), as dockerd(8) reads them at its start. */
import { readFileSync } from "node:fs"

/** How many ids the range has that begins with `first`: 0 without one, the smallest of several, since the engine does not say which it took. */
export const rangeFrom = (text: string, first: number): number => {
  const counts = text.split("\n").flatMap((line) => {
    const [, start, count] = line.split(":")
    return start !== undefined && Number(start) === first ? [Number(count)] : []
  })
  return counts.length === 0 ? 0 : Math.min(...counts.map((count) => (Number.isSafeInteger(count) ? count : 0)))
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

/** How many uids, and as many gids, a container has whose root is this uid and gid here; 0 where this host does not say. */
export const mappedIds = (uid: number, gid: number): number =>
  Math.min(rangeFrom(textOf("/etc/subuid"), uid), rangeFrom(textOf("/etc/subgid"), gid))
