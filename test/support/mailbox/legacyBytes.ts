/** Text in the old sets of characters that mail programs still write, by turning Node's decoders around. */

const tables = new Map<string, ReadonlyMap<string, ReadonlyArray<number>>>()

const tableOf = (set: string): ReadonlyMap<string, ReadonlyArray<number>> => {
  const known = tables.get(set)
  if (known !== undefined) return known
  const decoder = new TextDecoder(set)
  const made = new Map<string, ReadonlyArray<number>>()
  const add = (...bytes: ReadonlyArray<number>) => {
    const character = decoder.decode(Uint8Array.from(bytes))
    if (Array.from(character).length === 1 && character !== "\u{fffd}" && !made.has(character))
      made.set(character, bytes)
  }
  for (let byte = 0; byte < 256; byte++) add(byte)
  if (/^(?:shift_jis|gbk|big5|euc-kr|euc-jp)$/u.test(set))
    for (let lead = 0x81; lead < 0xff; lead++) for (let trail = 0x40; trail < 0xff; trail++) add(lead, trail)
  tables.set(set, made)
  return made
}

/** ISO-2022-JP is EUC-JP without the high bits, between escapes. */
const iso2022 = (text: string): Buffer => {
  const table = tableOf("euc-jp")
  const parts: Array<number> = []
  let isWide = false
  for (const character of text) {
    const bytes = table.get(character)
    if (bytes === undefined) throw new Error(`${character} is not in ISO-2022-JP`)
    if ((bytes.length === 2) !== isWide) {
      isWide = bytes.length === 2
      parts.push(0x1b, ...Buffer.from(isWide ? "$B" : "(B"))
    }
    parts.push(...bytes.map((byte) => byte & 0x7f))
  }
  return Buffer.from([...parts, ...(isWide ? [0x1b, ...Buffer.from("(B")] : [])])
}

/** The bytes of a text in a set. @throws Error for a letter that the set lacks. */
export const legacyBytes = (text: string, set: string): Buffer => {
  if (set === "utf-8" || set === "us-ascii") return Buffer.from(text)
  if (set === "utf-16le") return Buffer.from(`\u{feff}${text}`, "utf16le")
  if (set === "iso-2022-jp")
    return text
      .split("\n")
      .reduce((all, line, at) => Buffer.concat([all, Buffer.from(at === 0 ? "" : "\n"), iso2022(line)]), Buffer.of())
  const table = tableOf(set)
  return Buffer.from(
    Array.from(text, (character) => {
      const bytes = table.get(character)
      if (bytes === undefined) throw new Error(`${character} is not in ${set}`)
      return bytes
    }).flat()
  )
}
