/** Lines and messages of one line of JSON each, cut out of a stream of bytes whose writer is not trusted with memory. */

const NEWLINE = 0x0a

/**
 * A reader of lines: it is given the chunks as they come, and gives each whole line to `take`. What it returns, or what `take` does, is why the
 * stream cannot be read any further.
 */
export const makeLines = (bytes_max: number, take: (line: string) => string | undefined) => {
  const begun: Array<Buffer> = []
  let bytes = 0
  return (chunk: Buffer): string | undefined => {
    for (let rest = chunk; rest.length > 0;) {
      const end = rest.indexOf(NEWLINE)
      const part = end === -1 ? rest : rest.subarray(0, end)
      bytes += part.length
      if (bytes > bytes_max) return `a message is longer than ${bytes_max} bytes`
      begun.push(part)
      if (end === -1) return undefined
      const line = Buffer.concat(begun.splice(0)).toString("utf8")
      bytes = 0
      rest = rest.subarray(end + 1)
      const problem = take(line)
      if (problem !== undefined) return problem
    }
    return undefined
  }
}

/** `undefined` for what is not JSON. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A reader of messages, each of which it gives to `take`. */
export const makeJsonLines = (bytes_max: number, take: (value: unknown) => void) =>
  makeLines(bytes_max, (line) => {
    const value = parsed(line)
    if (value === undefined) return "a message is not JSON"
    take(value)
    return undefined
  })
