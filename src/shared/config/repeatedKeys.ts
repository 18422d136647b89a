/** Keys that stand twice in one object of a JSON text: a parser takes the last and says nothing of the others. Pure. */

type Path = ReadonlyArray<string>

interface Open {
  /** The keys so far; absent in an array. */
  readonly keys: Set<string> | undefined
  /** The key or the index whose value is being read. */
  at: string
  awaitsKey: boolean
}

/** Strings and what holds values apart; between them stand only numbers, words and blanks. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],]/gu

/** @param text which is known to be JSON. @returns the path of each key that was already there, in order. */
export const repeatedKeys = (text: string): ReadonlyArray<Path> => {
  const open: Array<Open> = []
  const repeated: Array<Path> = []
  for (const [token] of text.matchAll(TOKEN)) {
    const inner = open.at(-1)
    if (token === "{") open.push({ keys: new Set(), at: "", awaitsKey: true })
    else if (token === "[") open.push({ keys: undefined, at: "0", awaitsKey: false })
    else if (token === "}" || token === "]") open.pop()
    else if (inner === undefined) continue
    else if (token === "," && inner.keys === undefined) inner.at = String(Number(inner.at) + 1)
    else if (token === ",") inner.awaitsKey = true
    else if (inner.keys !== undefined && inner.awaitsKey) {
      inner.at = String(JSON.parse(token))
      inner.awaitsKey = false
      if (inner.keys.has(inner.at)) repeated.push(open.map(({ at }) => at))
      inner.keys.add(inner.at)
    }
  }
  return repeated
}
