/** The TLS identity of the TCP listener: a certificate and its key, read from files that an operator named. */
import { X509Certificate } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { isIP } from "node:net"
import { createSecureContext } from "node:tls"
import { Clock, Effect, Redacted } from "effect"
import { TransportRefused } from "#src/choird/config/AgentTransport.ts"
import type { TlsFiles } from "./tcp.ts"
import { TLS_FILE_BYTES_MAX } from "#src/shared/wire/endpoints.ts"

export interface TlsIdentity extends TlsFiles {
  /** The server's own certificate alone, as PEM: what agents are to trust. */
  readonly certificate: string
  /** The names and addresses of the certificate, without wildcards. */
  readonly names: ReadonlyArray<string>
  /** The reason why clients that connect to this name or address would refuse it; `undefined` when they would not. */
  problemFor(host: string): string | undefined
}

const reasonOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

const read = (what: string, path: string) =>
  Effect.try({
    try: () => {
      const { size } = statSync(path)
      if (size > TLS_FILE_BYTES_MAX) throw new Error(`it has more than ${TLS_FILE_BYTES_MAX} bytes`)
      return readFileSync(path, "utf8")
    },
    catch: (cause) => new TransportRefused({ problem: `the ${what} ${path} cannot be read: ${reasonOf(cause)}` })
  })

const usable = <A>(problem: string, run: () => A) =>
  Effect.try({ try: run, catch: (cause) => new TransportRefused({ problem: `${problem}: ${reasonOf(cause)}` }) })

const certifiedNames = (alternatives: string | undefined): ReadonlyArray<string> =>
  [...(alternatives ?? "").matchAll(/(?:DNS|IP Address):([^,"\s*]+)(?:,|$)/gu)].map(([, name = ""]) =>
    name.toLowerCase()
  )

/** Reads both files and checks that they belong together. */
export const readTlsIdentity = Effect.fn("TlsIdentity.read")(function* (files: {
  readonly cert: string
  readonly key: string
}) {
  const cert = yield* read("certificate", files.cert)
  const key = yield* read("key", files.key)
  const parsed = yield* usable(`${files.cert} is not a certificate`, () => new X509Certificate(cert))
  yield* usable(`the key ${files.key} does not belong to the certificate ${files.cert}`, () =>
    createSecureContext({ cert, key })
  )
  const { mode } = yield* usable(`the key ${files.key} cannot be read`, () => statSync(files.key))
  if ((mode & 0o007) !== 0) yield* Effect.logWarning(`permissions of the key ${files.key} are too open: chmod 600 it`)
  const now_ms = yield* Clock.currentTimeMillis
  const identity: TlsIdentity = {
    cert,
    key: Redacted.make(key),
    certificate: parsed.toString(),
    names: certifiedNames(parsed.subjectAltName),
    problemFor: (host) => {
      if (now_ms > Date.parse(parsed.validTo)) return `${files.cert} expired on ${parsed.validTo}`
      if (now_ms < Date.parse(parsed.validFrom)) return `${files.cert} is not valid before ${parsed.validFrom}`
      const holds = isIP(host) === 0 ? parsed.checkHost(host) : parsed.checkIP(host)
      if (holds !== undefined) return undefined
      const wanted = `${isIP(host) === 0 ? "DNS" : "IP"}:${host}`
      return `${files.cert} is not for ${host}: make one with subjectAltName=${wanted}, or listen on a name that it is for`
    }
  }
  return identity
})
