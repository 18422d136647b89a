/** One line of the benchmarks' table (docs/performance.md). */
export interface Row {
  readonly id: string
  readonly name: string
  readonly value: number
  readonly unit: string
  /** What the same machine needs at least in the same run, where there is such a thing. */
  readonly floor: number | null
  readonly ratio: number | null
  readonly target: number
  readonly ok: boolean
}

const round = (value: number): number => Number(value.toPrecision(4))

/** A figure that has to stay at or below its target. */
export const atMost = (id: string, name: string, value: number, unit: string, target: number): Row => ({
  id,
  name,
  value: round(value),
  unit,
  floor: null,
  ratio: null,
  target,
  ok: value <= target
})

/** A figure whose ratio to a floor of the same run has to stay at or below its target. */
export const ratioAtMost = (
  id: string,
  name: string,
  value: number,
  unit: string,
  floor: number,
  target: number
): Row => ({
  id,
  name,
  value: round(value),
  unit,
  floor: round(floor),
  ratio: round(value / floor),
  target,
  ok: value / floor <= target
})

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
