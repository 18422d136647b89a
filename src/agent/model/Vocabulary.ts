/** Bytes of a text without any place to split it that are merged into tokens as one; the work grows with their square. */
export const TOKEN_PIECE_BYTES_MAX = 256
/**
 * The vocabulary of o200k_base and its byte pair encoding, in a few typed arrays: 5 MB, where maps of strings take 70. It only
 * counts, and its work on a piece is bounded.
 */

/** A token's length is before its bytes in one byte. */
const TOKEN_BYTES_MAX = 255
/** More than twice the tokens, so that a search in the table ends soon; a power of two. */
const SLOTS = 2 ** 19
const NO_RANK = 2 ** 31 - 1

/** The tokens in the order of their ranks, each after its length: what a file of them holds. */
export const packVocabulary = (tokens: ReadonlyArray<string | ReadonlyArray<number> | undefined>): Uint8Array =>
  Buffer.concat(
    tokens.map((token) => {
      const bytes = typeof token === "string" ? Buffer.from(token) : Buffer.from(token ?? [])
      return Buffer.concat([Buffer.of(bytes.length), bytes])
    })
  )

const hash = (bytes: Uint8Array, from: number, to: number): number => {
  let value = 0x811c9dc5
  for (let at = from; at < to; at++) value = Math.imul(value ^ (bytes[at] ?? 0), 0x01000193)
  return (value ^ (value >>> 15)) & (SLOTS - 1)
}

/** Counts the tokens of pieces. */
export class Vocabulary {
  readonly #packed: Uint8Array
  /** Where each rank's bytes begin; their length is before. */
  readonly #begins: Uint32Array
  /** Ranks plus one by the hash of their bytes; the next free slot where two share one. */
  readonly #slots = new Uint32Array(SLOTS)
  // Of the piece at hand: where its parts begin, and the rank of each part joined with the next one.
  readonly #starts = new Int32Array(TOKEN_PIECE_BYTES_MAX + 2)
  readonly #ranks = new Int32Array(TOKEN_PIECE_BYTES_MAX + 2)
  #added = 0
  #position = 0

  constructor(packed: Uint8Array) {
    this.#packed = packed
    this.#begins = new Uint32Array(SLOTS / 2)
  }

  /** Takes up to so many further tokens over; whether some are left. A vocabulary counts once none are. */
  addSome(most: number): boolean {
    for (let count = 0; count < most && this.#position < this.#packed.length; count++) this.#addNext()
    return this.#position < this.#packed.length && this.#added < this.#begins.length
  }

  #addNext() {
    const begin = this.#position + 1
    const end = begin + (this.#packed[this.#position] ?? 0)
    let slot = hash(this.#packed, begin, end)
    while (this.#slots[slot] !== 0) slot = (slot + 1) & (SLOTS - 1)
    this.#begins[this.#added] = begin
    this.#added += 1
    this.#slots[slot] = this.#added
    this.#position = end
  }

  /** The rank of the bytes between two places, or one that no token has. */
  #rank(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from
    if (length > TOKEN_BYTES_MAX) return NO_RANK
    for (let slot = hash(bytes, from, to); this.#slots[slot] !== 0; slot = (slot + 1) & (SLOTS - 1)) {
      const rank = (this.#slots[slot] ?? 0) - 1
      const begin = this.#begins[rank] ?? 0
      let same = this.#packed[begin - 1] === length ? 0 : -1
      while (same >= 0 && same < length && this.#packed[begin + same] === bytes[from + same]) same++
      if (same === length) return rank
    }
    return NO_RANK
  }

  /**
   * The tokens of the first `length` bytes, which are one piece: what the vocabulary's pattern never splits. A longer one than
   * TOKEN_PIECE_BYTES_MAX is cut, since the work grows with the square of a piece; its count may then be off by some at each cut.
   */
  count(bytes: Uint8Array, length: number): number {
    let tokens = 0
    for (let from = 0; from < length; from += TOKEN_PIECE_BYTES_MAX)
      tokens += this.#countPiece(bytes, from, Math.min(length, from + TOKEN_PIECE_BYTES_MAX))
    return tokens
  }

  #countPiece(bytes: Uint8Array, from: number, to: number): number {
    if (to - from < 2 || this.#rank(bytes, from, to) !== NO_RANK) return 1
    const starts = this.#starts
    const ranks = this.#ranks
    let parts = to - from
    for (let part = 0; part < parts; part++) {
      starts[part] = from + part
      ranks[part] = part + 1 < parts ? this.#rank(bytes, from + part, from + part + 2) : NO_RANK
    }
    starts[parts] = to
    const joined = (part: number) =>
      part + 2 <= parts ? this.#rank(bytes, starts[part] ?? 0, starts[part + 2] ?? 0) : NO_RANK
    for (;;) {
      let lowest = 0
      for (let part = 1; part < parts; part++) if ((ranks[part] ?? 0) < (ranks[lowest] ?? 0)) lowest = part
      if (ranks[lowest] === NO_RANK) return parts
      starts.copyWithin(lowest + 1, lowest + 2, parts + 1)
      ranks.copyWithin(lowest + 1, lowest + 2, parts)
      parts -= 1
      ranks[lowest] = joined(lowest)
      if (lowest > 0) ranks[lowest - 1] = joined(lowest - 1)
    }
  }
}
