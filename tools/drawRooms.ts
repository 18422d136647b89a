/**
 * Draws docs/architecture.svg: the rooms of each program and what they import, as the sources have it. An arrow that follows from others is
 * left out, so that what is left can be read: of A → B → C and A → C, the last one.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Arrow, FLOORS, heights, type House, houseOf, type PROGRAMS, TOP } from "./rooms.ts"

const FILE = join(import.meta.dirname, "../docs/architecture.svg")
const BOX = { width: 142, height: 36, gapX: 14, gapY: 30 }
const MARGIN = 20
const TITLE = 34
/** The number of a floor is at the left edge. */
const FLOOR_WIDTH = 24
/** Width of an arrow in a row that it passes. */
const LANE_WIDTH = 4
/** Rounds of ordering the rows by their neighbours; further rounds change nothing visible. */
const SWEEPS = 4
/** Panels that are side by side. */
const BANDS = [["src/choird"], ["src/agent", "src/choirctl"], ["src/shared"]] satisfies ReadonlyArray<
  ReadonlyArray<(typeof PROGRAMS)[number]>
>

/** A room's place in a row, or the gap through which an arrow passes on its way to a lower row. */
interface Slot {
  readonly key: string
  readonly room: string | undefined
}

interface Placed extends Slot {
  readonly x: number
  readonly y: number
}

interface Row {
  readonly rooms: ReadonlyArray<string>
  /** The floor that begins with this row, and how many rows it has. */
  readonly floor?: { readonly number: number; readonly rows: number }
}

/** An arrow with the keys of the slots that it leads through, both ends included. */
interface Route {
  readonly imports: number
  readonly keys: ReadonlyArray<string>
}

interface Layout {
  readonly rows: ReadonlyArray<Row>
  readonly slots: ReadonlyArray<ReadonlyArray<Slot>>
  readonly routes: ReadonlyArray<Route>
}

/** The arrows that do not follow from others. */
const direct = ({ arrows }: House): ReadonlyArray<Arrow> => {
  const leads = (from: string, to: string, except: Arrow, seen: Set<string>): boolean =>
    arrows.some((arrow) => {
      if (arrow === except || arrow.from !== from) return false
      if (arrow.to === to) return true
      if (seen.has(arrow.to)) return false
      seen.add(arrow.to)
      return leads(arrow.to, to, except, seen)
    })
  return arrows.filter((arrow) => !leads(arrow.from, arrow.to, arrow, new Set([arrow.from])))
}

/** The rows of a program, the highest first: each floor, and within it each room above those of the floor that it imports. */
const rowsOf = (house: House): ReadonlyArray<Row> =>
  FLOORS[house.program]
    .flatMap((floor, index): ReadonlyArray<Row> => {
      const rooms = new Map([...house.rooms].filter(([room]) => floor.includes(room.split("/")[0] ?? room)))
      const arrows = house.arrows.filter(({ from, to }) => rooms.has(from) && rooms.has(to))
      const within = heights({ ...house, rooms, arrows })
      return within.map((row, level): Row => ({
        rooms: row,
        // Rows are turned over below, so that the highest of a floor names it.
        ...(level === within.length - 1 ? { floor: { number: index, rows: within.length } } : {})
      }))
    })
    .toReversed()

const widthOfSlot = ({ room }: Slot) => (room === undefined ? LANE_WIDTH : BOX.width)

const widthOfSlots = (slots: ReadonlyArray<Slot>) =>
  slots.reduce((width, slot) => width + widthOfSlot(slot) + BOX.gapX, -BOX.gapX)

/** The middle of each slot, measured from the middle of its row. */
const middles = (slots: ReadonlyArray<Slot>): ReadonlyArray<readonly [string, number]> => {
  let x = -widthOfSlots(slots) / 2
  return slots.map((slot) => {
    const middle = x + widthOfSlot(slot) / 2
    x += widthOfSlot(slot) + BOX.gapX
    return [slot.key, middle] as const
  })
}

/** Moves each slot towards those that its arrows lead to in the rows before it, down and up again. */
const untangled = (slots: ReadonlyArray<ReadonlyArray<Slot>>, routes: ReadonlyArray<Route>) => {
  const steps = routes.flatMap(({ keys }) => keys.slice(1).map((key, index) => [keys[index] ?? key, key] as const))
  const sweep = (rows: ReadonlyArray<ReadonlyArray<Slot>>, neighbours: (key: string) => ReadonlyArray<string>) => {
    const at = new Map<string, number>()
    return rows.map((row) => {
      const own = new Map(middles(row))
      const wanted = ({ key }: Slot) => {
        const near = neighbours(key).flatMap((other) => at.get(other) ?? [])
        return near.length === 0 ? (own.get(key) ?? 0) : near.reduce((sum, x) => sum + x, 0) / near.length
      }
      const moved = row.toSorted((a, b) => wanted(a) - wanted(b))
      for (const [key, x] of middles(moved)) at.set(key, x)
      return moved
    })
  }
  const above = (key: string) => steps.flatMap(([from, to]) => (to === key ? [from] : []))
  const below = (key: string) => steps.flatMap(([from, to]) => (from === key ? [to] : []))
  let rows = slots
  for (let times = 0; times < SWEEPS; times++) rows = sweep(sweep(rows, above).toReversed(), below).toReversed()
  return sweep(rows, above)
}

const layoutOf = (house: House): Layout => {
  const rows = rowsOf(house)
  const levelOf = (room: string) => rows.findIndex(({ rooms }) => rooms.includes(room))
  const routes = direct(house).map(({ from, imports, to }): Route => {
    const [first, last] = [levelOf(from), levelOf(to)]
    const passed = Array.from(
      { length: Math.max(0, last - first - 1) },
      (_, index) => `${from} ${to} ${first + 1 + index}`
    )
    return { imports: imports.length, keys: [from, ...passed, to] }
  })
  const slots = rows.map(({ rooms }, level) => [
    ...rooms.map((room): Slot => ({ key: room, room })),
    ...routes.flatMap(({ keys }) =>
      keys.flatMap((key): ReadonlyArray<Slot> => (key.endsWith(` ${level}`) ? [{ key, room: undefined }] : []))
    )
  ])
  return { rows, slots: untangled(slots, routes), routes }
}

const widthOf = ({ slots }: Layout) => Math.max(...slots.map(widthOfSlots)) + 2 * FLOOR_WIDTH + 2 * MARGIN

const heightOf = ({ rows }: Layout) => rows.length * (BOX.height + BOX.gapY) - BOX.gapY + TITLE + 2 * MARGIN

const arrow = (places: ReadonlyMap<string, Placed>, { imports, keys }: Route) => {
  const passed = keys.flatMap((key) => places.get(key) ?? [])
  const curves = passed.slice(1).map((to, index) => {
    const from = passed[index] ?? to
    const [y1, y2] = [from.y + BOX.height, to.y]
    const middle = (y1 + y2) / 2
    const through = to.room === undefined ? ` L${to.x} ${to.y + BOX.height}` : ""
    return `C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${y2}${through}`
  })
  const [first] = passed
  const start = first === undefined ? "" : `M${first.x} ${first.y + BOX.height}`
  const width = Math.min(3, 0.8 + Math.sqrt(imports) / 3).toFixed(1)
  return `<path d="${start} ${curves.join(" ")}" class="arrow" stroke-width="${width}" marker-end="url(#head)"/>`
}

const box = (room: string, { x, y }: Placed, files: number) =>
  `<g><rect x="${x - BOX.width / 2}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="5"/><text x="${x}" y="${y + 16}" class="name">${room === TOP ? "top" : room}</text><text x="${x}" y="${y + 29}" class="files">${files} ${files === 1 ? "file" : "files"}</text></g>`

/** A stripe behind every second floor, with the floor's number. */
const stripe = ({ number, rows }: NonNullable<Row["floor"]>, y: number, width: number) =>
  [
    ...(number % 2 === 0
      ? [
          `<rect x="0" y="${y - BOX.gapY / 2}" width="${width}" height="${rows * (BOX.height + BOX.gapY)}" class="stripe"/>`
        ]
      : []),
    `<text x="${MARGIN}" y="${y + BOX.height / 2 + 4}" class="floor">${number}</text>`
  ].join("\n")

const panel = (house: House, layout: Layout, left: number, width: number, top: number): string => {
  const { routes, rows, slots } = layout
  const yOf = (level: number) => top + TITLE + MARGIN + level * (BOX.height + BOX.gapY)
  const middle = left + width / 2 + FLOOR_WIDTH / 2
  const places = new Map<string, Placed>(
    slots.flatMap((row, level) => {
      const at = new Map(middles(row))
      return row.map((slot) => [slot.key, { ...slot, x: middle + (at.get(slot.key) ?? 0), y: yOf(level) }] as const)
    })
  )
  return [
    ...rows.flatMap(({ floor }, level) => (floor === undefined ? [] : [stripe(floor, yOf(level), width)])),
    `<text x="${left + MARGIN}" y="${top + TITLE - 8}" class="title">${house.program}</text>`,
    ...routes.map((route) => arrow(places, route)),
    ...[...places.values()].flatMap((placed) =>
      placed.room === undefined ? [] : [box(placed.room, placed, house.rooms.get(placed.room)?.length ?? 0)]
    )
  ].join("\n")
}

export const drawing = (): string => {
  const bands = BANDS.map((band) =>
    band.map((program) => {
      const house = houseOf(program)
      const layout = layoutOf(house)
      return { house, layout, width: widthOf(layout) }
    })
  )
  const widthOfBand = (band: (typeof bands)[number]) => band.reduce((total, { width }) => total + width, 0)
  const width = Math.max(...bands.map(widthOfBand))
  let top = 0
  const panels = bands.flatMap((band) => {
    const spare = (width - widthOfBand(band)) / band.length
    let left = 0
    const drawn = band.map(({ house, layout, width: narrow }) => {
      const own = narrow + spare
      left += own
      return panel(house, layout, left - own, own, top)
    })
    top += Math.max(...band.map(({ layout }) => heightOf(layout)))
    return drawn
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" font-family="system-ui, sans-serif" role="img" aria-label="The rooms of Choir's programs and what they import">
<style>
rect { fill: #f6f4ee; stroke: #55534c; }
.stripe { fill: #f3f6fa; stroke: none; }
.arrow { fill: none; stroke: #8a6d3b; opacity: .7; }
.title { font-size: 18px; font-weight: 600; }
.name { font-size: 13px; text-anchor: middle; }
.files { font-size: 10px; text-anchor: middle; fill: #6b6960; }
.floor { font-size: 14px; fill: #6b6960; }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#8a6d3b"/></marker></defs>
<rect x="0" y="0" width="${width}" height="${top}" style="fill:#ffffff;stroke:none"/>
${panels.join("\n")}
</svg>
`
}

/** Whether docs/architecture.svg shows the sources as they are. */
export const isCurrent = (): boolean => readFileSync(FILE, "utf8") === drawing()

if (import.meta.main) writeFileSync(FILE, drawing())
