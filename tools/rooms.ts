/** The rooms of a program: its folders, and which of them import which, types included. Read from the imports of the sources themselves. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, posix } from "node:path"

const ROOT = join(import.meta.dirname, "..")

/** The files in a program's own folder. */
export const TOP = "."

/** The source trees whose folders are rooms. */
export const PROGRAMS = ["src/choird", "src/agent", "src/choirctl", "src/shared"] as const

export type Program = (typeof PROGRAMS)[number]

/**
 * The floors of each program, the lowest first. An import may lead down, or to another room of the same floor as long as no room
 * imports itself over others. A folder inside a room is on the room's floor. The linter takes its rules from here (oxlint.config.ts).
 */
export const FLOORS: Readonly<Record<Program, ReadonlyArray<ReadonlyArray<string>>>> = {
  "src/choird": [
    ["config"],
    ["repos", "database", "queues"],
    ["logs", "runtime", "sessions"],
    ["images", "listeners", "hosttools", "workers"],
    ["agents", "memory", "trials"],
    ["telemetry", "reconfiguration", "retention", "schedules", "plans"],
    ["approvals"],
    ["proposals"],
    ["chatcommands", "skillimports"],
    ["gateway"],
    ["telegram"],
    ["api"],
    [TOP]
  ],
  "src/agent": [
    ["image", "process", "settings", "workspace"],
    ["arbiter", "mail", "notion", "outside"],
    ["control"],
    ["git", "model"],
    ["memory"],
    ["tools"],
    ["calls"],
    ["session"],
    ["trial"],
    [TOP]
  ],
  "src/choirctl": [
    ["terminal"],
    ["client", "home"],
    ["daemon", "render"],
    ["backup", "chat", "doctor"],
    ["setup"],
    ["commands"],
    [TOP]
  ],
  // The files beside the rooms of shared are what all of them may import.
  "src/shared": [
    [TOP, "docker", "memory", "program", "text", "web"],
    ["events", "files", "wire"],
    ["git", "model"],
    ["config"],
    ["image"],
    ["plans", "session"]
  ]
}

export interface Arrow {
  readonly from: string
  readonly to: string
  /** The imports behind it, as `file imports file`. */
  readonly imports: ReadonlyArray<string>
}

export interface House {
  readonly program: Program
  /** Files of each room. */
  readonly rooms: ReadonlyMap<string, ReadonlyArray<string>>
  readonly arrows: ReadonlyArray<Arrow>
}

const IMPORT = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)"([#.][\w@#./-]*)"/gu

const importsOf = (file: string): ReadonlyArray<string> =>
  [...readFileSync(join(ROOT, file), "utf8").matchAll(IMPORT)].map(([, wanted = ""]) =>
    wanted.startsWith("#") ? wanted.slice(1) : posix.join(dirname(file), wanted)
  )

/** The house of one program. */
export const houseOf = (program: Program): House => {
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

/** The imports that lead from a lower floor to a higher one. */
export const upward = ({ arrows, program }: House): ReadonlyArray<string> => {
  const floorOf = (room: string) => FLOORS[program].findIndex((floor) => floor.includes(room.split("/")[0] ?? TOP))
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

/**
 * The files that import themselves over others, types included: each import of a file that leads back to it. What imports nothing of the rest is taken
 * away until nothing is left, or only circles and the files between them.
 *
 * @param imports the imports of each file.
 */
export const circles = (imports: ReadonlyMap<string, ReadonlyArray<string>>): ReadonlyArray<string> => {
  let left = new Set(imports.keys())
  for (;;) {
    const isWanted = new Set(
      [...left].flatMap((file) => (imports.get(file) ?? []).filter((wanted) => left.has(wanted)))
    )
    const next = new Set(
      [...left].filter((file) => isWanted.has(file) && (imports.get(file) ?? []).some((wanted) => left.has(wanted)))
    )
    if (next.size === left.size) break
    left = next
  }
  return [...left].flatMap((file) =>
    (imports.get(file) ?? []).filter((wanted) => left.has(wanted)).map((wanted) => `${file} imports ${wanted}`)
  )
}

/** The imports of all files of some folders. */
export const importsBelow = (folders: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(
    folders.flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .map((name) => posix.join(folder, name))
        .map((file) => [file, importsOf(file)] as const)
    )
  )
