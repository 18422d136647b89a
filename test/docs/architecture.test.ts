/** docs/architecture.md against the sources: its paths exist, it names every room, and its answers lead to the right file. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join, posix } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { FLOORS, houseOf, PROGRAMS, TOP } from "#tools/rooms.ts"

const ROOT = join(import.meta.dirname, "../..")
const lines = readFileSync(join(ROOT, "docs/architecture.md"), "utf8").split("\n")

/** Folders and files at the top of the repository, as a path of the page begins. */
const TOPS = new Set(readdirSync(ROOT))
const unquoted = (cell = "") => cell.replaceAll("`", "")
/** A source below a folder is a path as well where the folder is not at the top, so that it is found missing. */
const isPath = (text: string) => TOPS.has(text.split("/")[0] ?? "") || /^[\w.-]+\/[\w./-]*\.ts$/u.test(text)
const isFile = (text: string) => /^[\w.-]+\.(?:ts|svg)$/u.test(text)

interface Named {
  readonly line: string
  readonly path: string
  /** Names in parentheses behind the path, which the file must hold. */
  readonly names: ReadonlyArray<string>
}

const isFolder = (path: string) => existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isDirectory()

/** The paths in the backticks of a line. A bare file name belongs to the folder that was named before it on the line. */
const pathsOf = (line: string): ReadonlyArray<Named> => {
  let folder = ""
  return [...line.matchAll(/`([^`]+)`(?: \(((?:`\w+`(?:, )?)+)\))?/gu)].flatMap(([, text = "", names]) => {
    if (!isPath(text) && !isFile(text)) return []
    const path = isPath(text) ? text : posix.join(folder, text)
    folder = isFolder(path) ? path : posix.dirname(path)
    return [{ line, path, names: names === undefined ? [] : names.split(", ").map(unquoted) }]
  })
}

const cellsOf = (line: string) => line.split("|").map((cell) => cell.trim())
const rows = lines.filter((line) => line.startsWith("|")).map(cellsOf)
const named = lines.flatMap(pathsOf)

const assertHolds = (path: string, name: string, about: string) =>
  assert.match(readFileSync(join(ROOT, path), "utf8"), new RegExp(String.raw`\b${name}\b`, "u"), about)

describe("docs/architecture.md", () => {
  it("names only paths that exist", () => {
    assert.isAbove(named.length, 250)
    assert.deepStrictEqual(
      named.filter(({ path }) => !existsSync(join(ROOT, path))),
      []
    )
  })

  it("has a row for every room of the four programs", () => {
    const described = new Set(rows.flatMap((cells) => cells.slice(1, 3).map(unquoted)))
    const rooms = PROGRAMS.flatMap((program) =>
      [...houseOf(program).rooms.keys()].map((room) => (room === TOP ? program : `${program}/${room}`))
    )
    assert.isAbove(rooms.length, 50)
    assert.deepStrictEqual(
      rooms.filter((room) => !described.has(room)),
      []
    )
  })

  it("puts each room on its floor", () => {
    const floors = PROGRAMS.flatMap((program) =>
      rows.flatMap(([, floor = "", cell]) => {
        const place = unquoted(cell)
        if (!/^\d+$/u.test(floor) || (place !== program && !place.startsWith(`${program}/`))) return []
        return [{ program, room: place.split("/")[2] ?? TOP, floor: Number(floor) }]
      })
    )
    assert.isAbove(floors.length, 50)
    for (const { floor, program, room } of floors)
      assert.include(FLOORS[program][floor] ?? [], room, `${room} of ${program} is not on floor ${floor}`)
  })

  it("answers each question with a file that holds the name", () => {
    const answers = lines
      .slice(lines.indexOf("## Find it"))
      .filter((line) => line.includes("?"))
      .map(cellsOf)
    assert.isAbove(answers.length, 15)
    for (const [, question = "", file, name] of answers) assertHolds(unquoted(file), unquoted(name), question)
  })

  it("names functions that are in the file before them", () => {
    const functions = named.flatMap(({ names, path }) => names.map((name) => ({ name, path })))
    assert.isAbove(functions.length, 30)
    for (const { name, path } of functions) assertHolds(path, name, `${path}: ${name}`)
  })
})
