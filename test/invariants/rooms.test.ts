import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, posix } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { isCurrent } from "#tools/drawRooms.ts"
import { circles, FLOORS, houseOf, importsBelow, knots, PROGRAMS, upward } from "#tools/rooms.ts"
import { ROOT } from "./source.ts"

describe("the rooms", () => {
  for (const program of PROGRAMS) {
    it(`of ${program} all have a floor, and no import leads up`, () => {
      const house = houseOf(program)
      const rooms = new Set([...house.rooms.keys()].map((room) => room.split("/")[0] ?? room))
      assert.deepStrictEqual([...rooms].toSorted(), FLOORS[program].flat().toSorted())
      assert.isAbove(house.arrows.length, 10)
      assert.deepStrictEqual(upward(house), [])
    })

    it(`of ${program} import each other in one order, so that none depends on itself`, () => {
      const house = houseOf(program)
      assert.isAbove(house.rooms.size, 3)
      assert.deepStrictEqual(
        knots(house).flatMap(({ imports }) => imports),
        []
      )
    })
  }

  it("have no file that imports itself over others, types included", () => {
    const imports = importsBelow(["src", "schema"])
    assert.isAbove(imports.size, 900)
    assert.deepStrictEqual(circles(imports), [])
    const one = new Map([
      ["a", ["b"]],
      ["b", ["c", "d"]],
      ["c", ["a"]],
      ["d", []]
    ])
    assert.deepStrictEqual(circles(one), ["a imports b", "b imports c", "c imports a"])
  })

  it("have the linter refuse an import that leads up, and allow one that leads down, between all neighbouring floors", () => {
    const folder = mkdtempSync(join(tmpdir(), "choir-rooms-"))
    const up: Array<string> = []
    try {
      writeFileSync(join(folder, "oxlint.config.ts"), `export { default } from "${join(ROOT, "oxlint.config.ts")}"\n`)
      const write = (program: string, room: string, wanted: string) => {
        const file = posix.join(program, room, `to-${wanted}.ts`)
        mkdirSync(join(folder, program, room), { recursive: true })
        writeFileSync(join(folder, file), `import "#${posix.join(program, wanted)}/file.ts"\n`)
        return file
      }
      for (const program of PROGRAMS)
        for (const [index, floor] of FLOORS[program].entries())
          for (const higher of FLOORS[program][index + 1] ?? [])
            for (const lower of floor) {
              up.push(write(program, lower, higher))
              write(program, higher, lower)
            }
      const linter = join(ROOT, "node_modules/oxlint/bin/oxlint")
      const { stdout } = spawnSync(process.execPath, [linter, "--format", "unix"], { cwd: folder, encoding: "utf8" })
      const refused = stdout
        .split("\n")
        .flatMap((line) => /^(?<file>\S+?):\d+:\d+: .*restricted/u.exec(line)?.groups?.["file"] ?? [])
      assert.sameMembers(refused, up)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("are in docs/architecture.svg as the sources have them", () => {
    assert.isTrue(isCurrent(), "draw it again: npm run rooms")
  })
})
