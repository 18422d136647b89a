/** A set of at most `max` values. The value that was added longest ago leaves first. */
export class BoundedSet<V> {
  readonly #values = new Set<V>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  has(value: V): boolean {
    return this.#values.has(value)
  }

  add(value: V): void {
    this.#values.delete(value)
    this.#values.add(value)
    const oldest = this.#values.values().next()
    if (this.#values.size > this.#max && oldest.done !== true) this.#values.delete(oldest.value)
  }
}
