/** The rooms of a program: its folders, and which of them import which, types included. Read from the imports of the sources themselves. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, posix } from "node:path"

const ROOT = join(import.meta.dirname, "..")

/** The files beside a program's entry, which put the rooms together. */
export const TOP = "."

/**
 * The floors of choird, the lowest first. An import may lead down, or to another room of the same floor as long as no room
 * imports itself over others.
 */
export const FLOORS: ReadonlyArray<ReadonlyArray<string>> = [
  ["config"],
  ["repos", "database", "queues"],
  ["logs", "runtime", "sessions"],
  ["images", "listeners", "hosttools", "rehearsals", "workers"],
  ["agents", "memory", "trials"],
  ["telemetry", "reconfiguration", "retention", "schedules"],
  ["approvals"],
  ["gateway"],
  ["api"],
  [TOP]
]

export const PROGRAMS = ["src/choird", "src/agent", "src/choirctl", "src/shared"] as const

export interface Arrow {
  readonly from: string
  readonly to: string
  /** The imports behind it, as `file imports file`. */
  readonly imports: ReadonlyArray<string>
}

export interface House {
  readonly program: string
  /** Files of each room. */
  readonly rooms: ReadonlyMap<string, ReadonlyArray<string>>
  readonly arrows: ReadonlyArray<Arrow>
}

const IMPORT = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)"([#.][\w@#./-]*)"/gu

const importsOf = (file: string): ReadonlyArray<string> =>
  [...readFileSync(join(ROOT, file), "utf8").matchAll(IMPORT)].map(([, wanted = ""]) =>
    wanted.startsWith("#") ? wanted.slice(1) : posix.join(dirname(file), wanted)
  )

/** The house of one program, such as `src/choird`. */
export const houseOf = (program: string): House => {
  const files = readdirSync(join(ROOT, program), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => posix.join(program, name))
    .toSorted()
  const roomOf = (file: string) => posix.relative(program, dirname(file)) || TOP
  const rooms = Map.groupBy(files, roomOf)
  const crossing = files.flatMap((file) =>
    importsOf(file)
      .filter((wanted) => wanted.startsWith(`${program}/`) && roomOf(wanted) !== roomOf(file))
      .map((wanted) => ({ from: roomOf(file), to: roomOf(wanted), line: `${file} imports ${wanted}` }))
  )
  const arrows = [...Map.groupBy(crossing, ({ from, to }) => `${from} ${to}`).values()].flatMap((same) =>
    same[0] === undefined ? [] : [{ from: same[0].from, to: same[0].to, imports: same.map(({ line }) => line) }]
  )
  return { program, rooms, arrows }
}

/** The imports that lead from a lower floor of choird to a higher one. */
export const upward = ({ arrows }: House): ReadonlyArray<string> => {
  const floorOf = (room: string) => FLOORS.findIndex((floor) => floor.includes(room.split("/")[0] ?? TOP))
  return arrows.flatMap(({ from, imports, to }) => (floorOf(to) > floorOf(from) ? imports : []))
}

/** The rooms by height: those that import no other room first, then those that import these alone. */
export const heights = ({ arrows, rooms }: House): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<ReadonlyArray<string>> = []
  let left = [...rooms.keys()].toSorted()
  while (left.length > 0) {
    const standing = new Set(left)
    const row = left.filter((room) => !arrows.some(({ from, to }) => from === room && standing.has(to)))
    // Rooms that import each other are one row, so that a picture of them can still be drawn.
    rows.push(row.length === 0 ? left : row)
    left = row.length === 0 ? [] : left.filter((room) => !row.includes(room))
  }
  return rows
}

/** The arrows by which a room imports itself, over others. */
export const knots = ({ arrows }: House): ReadonlyArray<Arrow> => {
  const reaches = (from: string, to: string, seen: Set<string>): boolean =>
    arrows.some((arrow) => {
      if (arrow.from !== from) return false
      if (arrow.to === to) return true
      if (seen.has(arrow.to)) return false
      seen.add(arrow.to)
      return reaches(arrow.to, to, seen)
    })
  return arrows.filter(({ from, to }) => reaches(to, from, new Set()))
}
