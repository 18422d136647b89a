import { assert, describe, it } from "@effect/vitest"
import { isCurrent } from "#tools/drawRooms.ts"
import { FLOORS, houseOf, knots, PROGRAMS, TOP, upward } from "#tools/rooms.ts"
import { sourceOf } from "./source.ts"

interface Linter {
  readonly overrides: ReadonlyArray<{
    readonly files: ReadonlyArray<string>
    readonly rules: {
      readonly "no-restricted-imports"?: readonly [
        string,
        { readonly patterns: ReadonlyArray<{ readonly group: ReadonlyArray<string> }> }
      ]
    }
  }>
}

const inRoom = (room: string) => (room === TOP ? "#src/choird/*.ts" : `#src/choird/${room}/**`)

describe("the rooms", () => {
  it("of choird all have a floor, and no import leads up", () => {
    const house = houseOf("src/choird")
    const rooms = new Set([...house.rooms.keys()].map((room) => room.split("/")[0] ?? room))
    assert.deepStrictEqual([...rooms].toSorted(), FLOORS.flat().toSorted())
    assert.isAbove(house.arrows.length, 30)
    assert.deepStrictEqual(upward(house), [])
  })

  for (const program of PROGRAMS)
    it(`of ${program} import each other in one order, so that none depends on itself`, () => {
      const house = houseOf(program)
      assert.isAbove(house.rooms.size, 3)
      assert.deepStrictEqual(
        knots(house).flatMap(({ imports }) => imports),
        []
      )
    })

  it("of choird have their floors in the linter's rules too", () => {
    const { overrides } = JSON.parse(sourceOf(".oxlintrc.json")) as Linter
    const above = (room: string) => {
      const found = overrides.flatMap(({ files, rules }) =>
        files.includes(`src/choird/${room}/**`) ? (rules["no-restricted-imports"] ?? []) : []
      )
      return found.flatMap((rule) => (typeof rule === "string" ? [] : (rule.patterns.at(-1)?.group ?? []))).toSorted()
    }
    for (const [index, rooms] of FLOORS.slice(0, -1).entries())
      for (const room of rooms)
        assert.deepStrictEqual(
          above(room),
          FLOORS.slice(index + 1)
            .flat()
            .map(inRoom)
            .toSorted(),
          room
        )
  })

  it("are in docs/architecture.svg as the sources have them", () => {
    assert.isTrue(isCurrent(), "draw it again: npm run rooms")
  })
})
