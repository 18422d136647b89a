/** Files whose versions a lane remembers, and the characters of their paths together; the longest unused go first. */
export const SEEN_FILES_MAX = 256
export const SEEN_PATHS_CHARS_MAX = 16 * 1024
/** The versions of files that a lane has seen (E10). One that is forgotten only has to be read again before it is written. */

/** A path and the digest of what stood there. */
export type FileSeen = readonly [path: string, version: string]

/** With these seen last. Beyond the limits those that were not seen for the longest go first. */
export const withSeen = (
  seen: ReadonlyMap<string, string>,
  files: ReadonlyArray<FileSeen>
): ReadonlyMap<string, string> => {
  if (files.length === 0) return seen
  const next = new Map(seen)
  for (const [path, version] of files.slice(-SEEN_FILES_MAX)) {
    next.delete(path)
    next.set(path, version)
  }
  let chars = 0
  for (const path of next.keys()) chars += path.length
  for (const path of next.keys()) {
    if (next.size <= SEEN_FILES_MAX && chars <= SEEN_PATHS_CHARS_MAX) break
    next.delete(path)
    chars -= path.length
  }
  return next
}
