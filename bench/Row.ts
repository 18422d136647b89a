/** One line of the benchmarks' table (docs/performance.md). */
export interface Row {
  readonly id: string
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The least that the same machine needs in the same run, if that can be measured. */
  readonly floor: number | null
  readonly ratio: number | null
  /** Of the ratio where there is one, else of the value. */
  readonly target: number
  /** Whether the target is the least there may be; otherwise it is the most. */
  readonly least: boolean
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
  least: false,
  ok: value <= target
})

/** A figure that has to reach its target. */
export const atLeast = (id: string, name: string, value: number, unit: string, target: number): Row => ({
  ...atMost(id, name, value, unit, target),
  least: true,
  ok: value >= target
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
  ...atMost(id, name, value, unit, target),
  floor: round(floor),
  ratio: round(value / floor),
  ok: value / floor <= target
})

/** A figure whose ratio to one of the same run has to reach its target. */
export const ratioAtLeast = (
  id: string,
  name: string,
  value: number,
  unit: string,
  floor: number,
  target: number
): Row => ({ ...ratioAtMost(id, name, value, unit, floor, target), least: true, ok: value / floor >= target })

/** The value below which a share of the others lies. */
export const place = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.round((values.length - 1) * share)] ?? Number.NaN

/** The median of figures with their tenth and ninetieth percentile, for a person to judge how steady they are. */
export const spread = (values: ReadonlyArray<number>): string =>
  `${round(median(values))} (p10 ${round(place(values, 0.1))}, p90 ${round(place(values, 0.9))}, ${values.length} runs)`

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
