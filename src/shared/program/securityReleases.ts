/**
 * Security releases of what Choir runs on. `test/library/securityReleases.test.ts` fails when a pin is older than one of them. After a look at the
 * announcements, change the day and add what is new (docs/decisions/programs.md).
 */

/** The day on which somebody last looked at the announcements. */
export const LAST_LOOKED = "2026-11-28"

/** A release that closes holes. */
export interface SecurityRelease {
  readonly name: string
  /** The day on which it was published. */
  readonly date: string
  /** The first version of each line without the holes, oldest line first. Lines between them get no more releases; later ones begin without the holes. */
  readonly fixed: ReadonlyArray<string>
  readonly holes: string
}

/** That of Node. Programs do not run on an older one (`version.ts`). */
export const NODE_RELEASE: SecurityRelease = {
  name: "node",
  date: "2026-10-22",
  fixed: ["22.23.4", "24.22.1", "26.12.1"],
  holes: "CVE-2026-111497, an out-of-bounds write in the Brotli decoder; three holes in how TLS and DNS read host names"
}

export const SECURITY_RELEASES: ReadonlyArray<SecurityRelease> = [
  NODE_RELEASE,
  {
    name: "undici",
    date: "2026-03-12",
    fixed: ["6.24.0", "7.24.0"],
    holes: "CVE-2026-22036, CVE-2026-2229, CVE-2026-2581: memory and processor time without end by compressed answers"
  }
]

/** Only a release has three numbers; `27.0.0-nightly` cannot be compared. */
const numbersOf = (version: string): readonly [number, number, number] | undefined => {
  const [, major, minor, patch] = /^(\d{1,4})\.(\d{1,4})\.(\d{1,4})$/u.exec(version) ?? []
  return major === undefined ? undefined : [Number(major), Number(minor), Number(patch)]
}

/** Whether a version has the fixes: in a named line from the named version on, or in a line after the newest. */
export const hasFixes = ({ fixed }: SecurityRelease, version: string): boolean => {
  const own = numbersOf(version)
  if (own === undefined) return false
  const [major, minor, patch] = own
  const firsts = fixed.map(numbersOf).filter((first) => first !== undefined)
  const inLine = firsts.find(([line]) => line === major)
  if (inLine === undefined) return firsts.every(([line]) => major > line)
  return minor === inLine[1] ? patch >= inLine[2] : minor > inLine[1]
}
