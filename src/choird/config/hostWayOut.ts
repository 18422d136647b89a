/** The way out of choird's host, read at its start and handed to agents: private authorities and proxies. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { getCACertificates } from "node:tls"
import { Effect, Runtime, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import type { WayOut } from "#schema/WayOut.ts"
import { readAuthorities } from "#src/shared/config/authorities.ts"
import { proxiesOf, proxyProblems } from "#src/shared/wire/proxies.ts"
import { takeWayOut } from "#src/shared/wire/wayOut.ts"

/** The file of a home with all authorities that are trusted, for git, which takes no further ones. */
const AUTHORITIES_FILE = "authorities.pem"

/** A file of authorities or a proxy that cannot be used. */
export class WayOutRefused extends Schema.TaggedError<WayOutRefused>()("WayOutRefused", {
  problem: Schema.String,
  fix: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 78
  override get message() {
    return `choird cannot start: ${this.problem}. To fix it: ${this.fix}`
  }
}

let taken: WayOut = {}

/** The way out as agents get it. */
export const hostWayOut = (): WayOut | undefined => (Object.keys(taken).length === 0 ? undefined : taken)

/** Lets git trust what choird trusts, unless its operator has said what git is to trust. */
const toldGit = (home: string) =>
  Effect.sync(() => {
    if (process.env["SSL_CERT_FILE"] !== undefined || process.env["GIT_SSL_CAINFO"] !== undefined) return
    const path = join(home, AUTHORITIES_FILE)
    writeFileSync(path, `${getCACertificates("default").join("\n")}\n`, { mode: 0o600 })
    process.env["SSL_CERT_FILE"] = path
  })

/** Takes the way out for this process. For the holder of the home's lock. @param home its real path. */
export const takeHostWayOut = Effect.fn("takeHostWayOut")(function* (home: string, { tls }: Config) {
  const { problems, text } = readAuthorities(tls)
  const [unusable] = problems
  if (unusable !== undefined) return yield* new WayOutRefused({ problem: unusable.problem, fix: unusable.fix })
  const proxies = proxiesOf(process.env)
  const [odd] = proxyProblems(proxies)
  if (odd !== undefined)
    return yield* new WayOutRefused({ problem: odd, fix: "write it as http://HOST:PORT, or take it out" })
  taken = {
    ...(text === undefined ? {} : { authorities: text }),
    ...(proxies.http === undefined && proxies.https === undefined ? {} : { proxies })
  }
  yield* Effect.sync(() => takeWayOut(taken))
  if (text !== undefined) yield* toldGit(home)
})
