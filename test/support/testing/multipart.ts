/**
 * Reads multipart/form-data. Written by hand because grammY leaves `filename=` unquoted, which the stock parsers refuse.
 */
export interface FormFile {
  readonly name: string
  readonly bytes: Buffer
}

export interface Form {
  readonly fields: Readonly<Record<string, string>>
  readonly files: Readonly<Record<string, FormFile>>
}

/** The parts of `body`, or `undefined` when the content type names no boundary. */
export const parseMultipart = (contentType: string, body: Buffer): Form | undefined => {
  const boundary = /boundary="?([^";]+)/u.exec(contentType)?.[1]
  if (boundary === undefined) return undefined
  const mark = Buffer.from(`--${boundary}`)
  const fields: Record<string, string> = {}
  const files: Record<string, FormFile> = {}
  let start = body.indexOf(mark)
  for (let end = 0; start >= 0; start = end) {
    start += mark.length + 2
    end = body.indexOf(mark, start)
    const split = body.indexOf("\r\n\r\n", start)
    if (end < 0 || split < 0 || split > end) break
    const head = body.toString("utf8", start, split)
    const content = body.subarray(split + 4, end - 2)
    const name = /[; ]name="?([^";\r\n]+)/iu.exec(head)?.[1]
    const filename = /filename="?([^"\r\n]*?)"?(?:\r\n|$)/iu.exec(head)?.[1]
    if (name === undefined) continue
    if (filename === undefined) fields[name] = content.toString("utf8")
    else files[name] = { name: filename, bytes: Buffer.from(content) }
  }
  return { fields, files }
}
