/** The weight of all values of a map together. */
export interface Weight<V> {
  readonly most: number
  readonly of: (value: V) => number
}

/** A map of at most `max` keys, and of a weight. The key that was set longest ago leaves first; the newest stays in any case. */
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

  /** Sets a key, which becomes the newest. */
  set(key: K, value: V): void {
    this.delete(key)
    const weight = this.#weight?.of(value) ?? 0
    this.#entries.set(key, { value, weight })
    this.#total += weight
    for (const oldest of this.#entries.keys()) {
      const { size } = this.#entries
      if (size <= this.#max && (size === 1 || this.#total <= (this.#weight?.most ?? 0))) break
      this.delete(oldest)
    }
  }

  delete(key: K): void {
    this.#total -= this.#entries.get(key)?.weight ?? 0
    this.#entries.delete(key)
  }
}
