/** Draws docs/architecture.svg: the rooms of each program and what they import, as the sources have it. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { FLOORS, heights, type House, houseOf, PROGRAMS } from "./rooms.ts"

const FILE = join(import.meta.dirname, "../docs/architecture.svg")
const BOX = { width: 132, height: 34, gapX: 18, gapY: 30 }
const MARGIN = 24
const TITLE = 34

interface Placed {
  readonly x: number
  readonly y: number
}

/** The rows of a program's picture, the highest first. A folder within a room stands beside it. */
const rowsOf = (house: House): ReadonlyArray<ReadonlyArray<string>> => {
  if (house.program !== "src/choird") return heights(house).toReversed()
  const rooms = [...house.rooms.keys()]
  return FLOORS.map((floor) =>
    rooms.filter((room) => floor.includes(room.split("/")[0] ?? room)).toSorted()
  ).toReversed()
}

const widthOf = (rows: ReadonlyArray<ReadonlyArray<string>>) =>
  Math.max(...rows.map((row) => row.length * (BOX.width + BOX.gapX) - BOX.gapX)) + 2 * MARGIN

const heightOf = (rows: ReadonlyArray<ReadonlyArray<string>>) =>
  rows.length * (BOX.height + BOX.gapY) - BOX.gapY + TITLE + 2 * MARGIN

const place = (rows: ReadonlyArray<ReadonlyArray<string>>, width: number, top: number) =>
  new Map<string, Placed>(
    rows.flatMap((row, level) => {
      const used = row.length * (BOX.width + BOX.gapX) - BOX.gapX
      return row.map((room, column): readonly [string, Placed] => [
        room,
        {
          x: (width - used) / 2 + column * (BOX.width + BOX.gapX),
          y: top + TITLE + MARGIN + level * (BOX.height + BOX.gapY)
        }
      ])
    })
  )

const arrow = (from: Placed, to: Placed, imports: number) => {
  const [x1, x2] = [from.x + BOX.width / 2, to.x + BOX.width / 2]
  const level = from.y === to.y
  const [y1, y2] = level ? [from.y + BOX.height, to.y + BOX.height] : [from.y + BOX.height, to.y]
  const bend = level ? BOX.gapY * 0.7 : (y2 - y1) / 2
  const path = level
    ? `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 + bend} ${x2} ${y2}`
    : `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`
  return `<path d="${path}" class="arrow" stroke-width="${Math.min(4, 0.6 + Math.sqrt(imports) / 2).toFixed(1)}" marker-end="url(#head)"/>`
}

const box = (room: string, { x, y }: Placed, files: number) =>
  `<g><rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="5"/><text x="${x + BOX.width / 2}" y="${y + 15}" class="name">${room === "." ? "top" : room}</text><text x="${x + BOX.width / 2}" y="${y + 28}" class="files">${files} ${files === 1 ? "file" : "files"}</text></g>`

const panel = (house: House, width: number, top: number): string => {
  const places = place(rowsOf(house), width, top)
  const at = (room: string) => places.get(room) ?? { x: 0, y: 0 }
  return [
    `<text x="${MARGIN}" y="${top + TITLE - 8}" class="title">${house.program}</text>`,
    ...house.arrows.map(({ from, imports, to }) => arrow(at(from), at(to), imports.length)),
    ...[...places].map(([room, placed]) => box(room, placed, house.rooms.get(room)?.length ?? 0))
  ].join("\n")
}

export const drawing = (): string => {
  const houses = PROGRAMS.map(houseOf)
  const width = Math.max(...houses.map((house) => widthOf(rowsOf(house))))
  let top = 0
  const panels = houses.map((house) => {
    const drawn = panel(house, width, top)
    top += heightOf(rowsOf(house))
    return drawn
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" font-family="system-ui, sans-serif">
<style>
rect { fill: #f6f4ee; stroke: #55534c; }
.arrow { fill: none; stroke: #8a6d3b; opacity: .35; }
.title { font-size: 18px; font-weight: 600; }
.name { font-size: 12px; text-anchor: middle; }
.files { font-size: 9px; text-anchor: middle; fill: #6b6960; }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#8a6d3b"/></marker></defs>
<rect x="0" y="0" width="${width}" height="${top}" style="fill:#ffffff;stroke:none"/>
${panels.join("\n")}
</svg>
`
}

/** Whether docs/architecture.svg shows the sources as they are. */
export const isCurrent = (): boolean => readFileSync(FILE, "utf8") === drawing()

if (import.meta.main) writeFileSync(FILE, drawing())
