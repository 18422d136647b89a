/** The version of Choir, as `--version`, `status`, backups and sessions name it. */
export const VERSION = "0.1.0"

/** The oldest Node that the programs run on. */
const OLDEST = { major: 22, minor: 19 }

/** The message for somebody whose Node is too old, or `undefined` when it is not. */
export const nodeTooOld = (version: string): string | undefined => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return undefined
  return `Choir needs Node ${OLDEST.major}.${OLDEST.minor} or later, and this is ${version}. A checkout of Choir brings its own: npm ci && npm run link`
}
