/** The private authorities that a host names: `tls.ca_file` of config.json, and Node's own variable for one more file. */
import { readFileSync, statSync } from "node:fs"
import type { Config } from "#schema/Config.ts"
import { AUTHORITIES_CHARS_MAX } from "#schema/WayOut.ts"
import { certificatesIn } from "#src/shared/wire/wayOut.ts"

/** By this variable Node trusts the authorities of a file in one process. An agent, which cannot see the file, is handed its contents. */
const EXTRA = "NODE_EXTRA_CA_CERTS"

/** A file of authorities that cannot be used. */
export interface AuthorityProblem {
  readonly problem: string
  readonly fix: string
}

const certificatesOf = (file: string): ReadonlyArray<string> => {
  if (statSync(file).size > AUTHORITIES_CHARS_MAX) throw new Error(`it has more than ${AUTHORITIES_CHARS_MAX} bytes`)
  return certificatesIn(readFileSync(file, "utf8"))
}

export interface Authorities {
  /** As PEM; undefined where there are none. */
  readonly text: string | undefined
  readonly problems: ReadonlyArray<AuthorityProblem>
}

export const readAuthorities = ({ ca_file }: Config["tls"], environment = process.env): Authorities => {
  const found: Array<string> = []
  const problems: Array<AuthorityProblem> = []
  for (const [name, file] of [
    ["tls.ca_file", ca_file],
    [EXTRA, environment[EXTRA]]
  ] as const) {
    if (file === undefined || file === "") continue
    try {
      found.push(...certificatesOf(file))
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).replace(/^[A-Z]+: /u, "")
      problems.push({
        problem: `${name} names ${file}, which cannot be used: ${reason}`,
        fix: "name a readable file with the authority's certificate as PEM, or take the name out"
      })
    }
  }
  return { text: found.length === 0 ? undefined : `${found.join("\n")}\n`, problems }
}
