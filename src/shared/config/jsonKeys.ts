/** The keys of a JSON text: their lines, and those that stand twice in one object, of which a parser takes the last and says nothing of the others. Pure. */

type Path = ReadonlyArray<string>

interface Open {
  /** The keys so far; absent in an array. */
  readonly keys: Set<string> | undefined
  /** The key or the index whose value is being read. */
  at: string
  awaitsKey: boolean
}

/** Line ends, strings and what holds values apart; between them stand only numbers, words and blanks. */
const TOKEN = /\n|"(?:[^"\\]|\\.)*"|[{}[\],]/gu

/** Calls `visit` for each key and each index of an array, in order. The path is made only when asked for, since a text may be nested as deep as it is long. */
const visitPlaces = (text: string, visit: (path: () => Path, line: number, isRepeated: boolean) => void): void => {
  const open: Array<Open> = []
  const path = () => open.map(({ at }) => at)
  let line = 1
  for (const [token] of text.matchAll(TOKEN)) {
    const inner = open.at(-1)
    if (token === "\n") line += 1
    else if (token === "{") open.push({ keys: new Set(), at: "", awaitsKey: true })
    else if (token === "[") {
      open.push({ keys: undefined, at: "0", awaitsKey: false })
      visit(path, line, false)
    } else if (token === "}" || token === "]") open.pop()
    else if (inner === undefined) continue
    else if (token === "," && inner.keys === undefined) {
      inner.at = String(Number(inner.at) + 1)
      visit(path, line, false)
    } else if (token === ",") inner.awaitsKey = true
    else if (inner.keys !== undefined && inner.awaitsKey) {
      inner.at = String(JSON.parse(token))
      inner.awaitsKey = false
      visit(path, line, inner.keys.has(inner.at))
      inner.keys.add(inner.at)
    }
  }
}

/** @param text which is known to be JSON. @returns the path of each key that was already there, in order. */
export const repeatedKeys = (text: string): ReadonlyArray<Path> => {
  const repeated: Array<Path> = []
  visitPlaces(text, (path, _line, isRepeated) => {
    if (isRepeated) repeated.push(path())
  })
  return repeated
}

const nameOf = (path: Path): string => JSON.stringify(path)

/** @param text which is known to be JSON. @returns the line, from 1, of the key at a path, or of the nearest one above that is there. */
export const keyLines = (text: string): ((path: Path) => number) => {
  const lines = new Map<string, number>()
  visitPlaces(text, (path, line) => void lines.set(nameOf(path()), line))
  return (path) => {
    for (let length = path.length; length > 0; length -= 1) {
      const found = lines.get(nameOf(path.slice(0, length)))
      if (found !== undefined) return found
    }
    return 1
  }
}
