/** Random numbers that are the same for the same seed: everything by chance in a simulation comes from here. */

/** Mixes a text into a 32-bit number (FNV-1a), so that each part of a simulation has a stream of its own. */
const mixed = (text: string): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/** One stream of random numbers. */
export interface Seed {
  /** At least 0, below 1. */
  unit(): number
  /** At least 0, below `bound`. */
  below(bound: number): number
  /** Both ends included. */
  between(least: number, most: number): number
  chance(probability: number): boolean
  pick<A>(from: readonly [A, ...ReadonlyArray<A>]): A
  /** Mostly short, now and then long: how waits are in the world. */
  wait(typical_ms: number): number
}

/** The stream of this name within a seed. Names keep streams apart: what one draws changes no other. */
export const makeSeed = (seed: number, name: string): Seed => {
  let a = mixed(`${seed}/${name}/a`)
  let b = mixed(`${seed}/${name}/b`)
  let c = mixed(`${seed}/${name}/c`)
  let counter = 1
  // sfc32: small, fast, and good enough that neighbouring seeds have nothing in common.
  const next = (): number => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    c |= 0
    return sum >>> 0
  }
  for (let round = 0; round < 12; round++) next()
  const unit = () => next() / 0x1_0000_0000
  const below = (bound: number) => Math.floor(unit() * bound)
  return {
    unit,
    below,
    between: (least, most) => least + below(most - least + 1),
    chance: (probability) => unit() < probability,
    pick: (from) => from[below(from.length)] ?? from[0],
    wait: (typical_ms) => Math.ceil(-Math.log(1 - unit()) * typical_ms)
  }
}
