/** The bytes of an answer that is not read beyond a limit. */

/** The bytes of an answer, up to the limit, whatever length it names. */
export const bytesOf = async (response: Response, bytes_max: number): Promise<Uint8Array | undefined> => {
  const chunks: Array<Uint8Array> = []
  let total = 0
  for await (const chunk of response.body ?? []) {
    total += chunk.length
    if (total > bytes_max) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
