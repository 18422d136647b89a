/** Files that old programs write into the text of a mail. Pure. */

const BEGIN = /^begin(?:-base64)? [0-7]{3,4} (\S.{0,200})$/u
const END = /^end[ \t]*$/u
/** A line of data: its length as one sign, and as many signs as that takes. */
const DATA = /^[ -`]{1,90}$/u

export interface PlainFile {
  readonly name: string
  readonly bytes: Uint8Array
}

const lineBytes = (line: string): Uint8Array => {
  const length = (line.charCodeAt(0) - 32) & 63
  const bytes = Buffer.alloc(Math.ceil(Math.max(line.length - 1, length) / 4 + 1) * 3)
  const value = (at: number) => ((at < line.length ? line.charCodeAt(at) : 32) - 32) & 63
  for (let at = 1, to = 0; at < line.length; at += 4, to += 3)
    bytes.writeUIntBE((value(at) << 18) | (value(at + 1) << 12) | (value(at + 2) << 6) | value(at + 3), to, 3)
  return bytes.subarray(0, length)
}

/** A text without such files, each of which is named in its place, and the files. */
export const withoutUuencoded = (text: string): { readonly text: string; readonly files: ReadonlyArray<PlainFile> } => {
  if (!/^begin/mu.test(text)) return { text, files: [] }
  const shown: Array<string> = []
  const files: Array<PlainFile> = []
  let open: { readonly name: string; readonly lines: Array<string> } | undefined
  for (const line of text.split(/\r?\n/u)) {
    const begun = open === undefined ? BEGIN.exec(line)?.[1] : undefined
    if (begun !== undefined) open = { name: begun.trim(), lines: [line] }
    else if (open === undefined) shown.push(line)
    else if (END.test(line)) {
      const bytes = Buffer.concat(open.lines.slice(1).map(lineBytes))
      files.push({ name: open.name, bytes })
      shown.push(`[file: ${open.name}]`)
      open = undefined
    } else {
      open.lines.push(line)
      if (DATA.test(line)) continue
      shown.push(...open.lines)
      open = undefined
    }
  }
  return { text: [...shown, ...(open?.lines ?? [])].join("\n"), files }
}
