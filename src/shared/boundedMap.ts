/** The weight of all values of a map together. */
export interface Weight<V> {
  readonly most: number
  readonly of: (value: V) => number
}

/**
 * A map of at most `max` keys, and of a weight. The key that was set longest ago leaves first; the newest stays in any case. These differ and
 * are written by hand: `Audit.ts` counts the row that it drops, `Prometheus.ts` closes the connection that it drops, `AllowedHosts.ts` adds the
 * addresses of one answer before it drops any, as `negotiate.ts` does with the digests of one request, `RequestMemory.ts` drops by age as well,
 * `RequestBodies.ts` does not keep a body that is too large even as the newest, and `UnauthenticatedConnections.ts` closes the connection that it
 * drops, and forgets an address only once it has rested.
 */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, { readonly value: V; readonly weight: number }>()
  readonly #max: number
  readonly #weight: Weight<V> | undefined
  #total = 0

  constructor(max: number, weight?: Weight<V>) {
    this.#max = max
    this.#weight = weight
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  /** Reads a key, which becomes the newest. */
  use(key: K): V | undefined {
    const value = this.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  *values(): Iterable<V> {
    for (const { value } of this.#entries.values()) yield value
  }

  /** Sets a key, which becomes the newest. */
  set(key: K, value: V): void {
    this.delete(key)
    this.setInPlace(key, value)
  }

  /** Sets a key. One that was set before does not become newer. */
  setInPlace(key: K, value: V): void {
    const weight = this.#weight?.of(value) ?? 0
    this.#total += weight - (this.#entries.get(key)?.weight ?? 0)
    this.#entries.set(key, { value, weight })
    for (const oldest of this.#entries.keys()) {
      const { size } = this.#entries
      if (size <= this.#max && (size === 1 || this.#total <= (this.#weight?.most ?? 0))) break
      this.delete(oldest)
    }
  }

  /** Whether the key was there. */
  delete(key: K): boolean {
    this.#total -= this.#entries.get(key)?.weight ?? 0
    return this.#entries.delete(key)
  }
}
