import type { LaneId } from "#schema/Ids.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** A map by lane or by job. A key that is gone leaves as soon as another is set, so that a long session holds no more than there is. */
export class LivingMap<K, V> {
  readonly #entries = new Map<K, V>()
  readonly #isThere: (key: K) => boolean

  /** `isThere` tells whether the lane or job of a key is still there. */
  constructor(isThere: (key: K) => boolean) {
    this.#isThere = isThere
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  set(key: K, value: V): void {
    for (const known of this.#entries.keys()) if (!this.#isThere(known)) this.#entries.delete(known)
    this.#entries.set(key, value)
  }

  delete(key: K): boolean {
    return this.#entries.delete(key)
  }
}

/** One by lane, of what `state` has. */
export const lanesMap = <V>(state: () => SessionState): LivingMap<LaneId, V> =>
  new LivingMap((lane) => laneOf(state(), lane) !== undefined)
