/** The lines of a JSON text's keys. Pure. */

interface Open {
  readonly isArray: boolean
  /** The key or the index whose value is being read. */
  at: string
  awaitsKey: boolean
}

/** Line ends, strings and what holds values apart; between them stand only numbers, words and blanks. */
const TOKEN = /\n|"(?:[^"\\]|\\.)*"|[{}[\],]/gu

const nameOf = (path: ReadonlyArray<string>): string => JSON.stringify(path)

/** @param text which is known to be JSON. @returns the line, from 1, of the key at a path, or of the nearest one above that is there. */
export const jsonLines = (text: string): ((path: ReadonlyArray<string>) => number) => {
  const lines = new Map<string, number>([[nameOf([]), 1]])
  const open: Array<Open> = []
  let line = 1
  for (const [token] of text.matchAll(TOKEN)) {
    const inner = open.at(-1)
    if (token === "\n") line += 1
    else if (token === "{" || token === "[") {
      open.push({ isArray: token === "[", at: "0", awaitsKey: token === "{" })
      if (token === "[") lines.set(nameOf(open.map(({ at }) => at)), line)
    } else if (token === "}" || token === "]") open.pop()
    else if (inner === undefined) continue
    else if (token === ",") {
      inner.awaitsKey = !inner.isArray
      if (inner.isArray) {
        inner.at = String(Number(inner.at) + 1)
        lines.set(nameOf(open.map(({ at }) => at)), line)
      }
    } else if (inner.awaitsKey) {
      inner.at = String(JSON.parse(token))
      inner.awaitsKey = false
      lines.set(nameOf(open.map(({ at }) => at)), line)
    }
  }
  return (path) => {
    for (let length = path.length; length > 0; length -= 1) {
      const found = lines.get(nameOf(path.slice(0, length)))
      if (found !== undefined) return found
    }
    return 1
  }
}
