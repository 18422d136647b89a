/** A running digest of what a simulation did. Not cryptographic: two runs of one seed are compared, not defended. */
export class Digest {
  #a = 0x9e3779b9
  #b = 0x85ebca6b

  number(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x01000193) ^ (this.#a >>> 15)
    this.#b = Math.imul(this.#b + value, 0x5bd1e995) ^ (this.#b >>> 13)
  }

  text(value: string): void {
    for (let index = 0; index < value.length; index++) this.number(value.charCodeAt(index))
  }

  hex(): string {
    return [this.#a, this.#b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("")
  }
}
