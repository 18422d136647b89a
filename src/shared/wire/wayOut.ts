/** The way of this process to servers outside: what it trusts and which proxies it uses. It is taken once, before the first request. */
import type { Agent, Dispatcher } from "@effect/platform-node/Undici"
import type { Proxies, WayOut } from "#schema/WayOut.ts"
import { proxiesOf, proxyFor } from "./proxies.ts"

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/gu

/** The certificates in a text. Throws for one that has none, or that has one which is broken. */
export const certificatesIn = (text: string): ReadonlyArray<string> => {
  const found = text.match(CERTIFICATE) ?? []
  if (found.length === 0) throw new Error("it has no certificate (BEGIN CERTIFICATE)")
  // Loaded here alone: an agent starts without TLS, and most have no authority of their own.
  const { X509Certificate } = process.getBuiltinModule("node:crypto")
  for (const each of found) void new X509Certificate(each)
  return found
}

let proxies: Proxies = proxiesOf(process.env)

/** Takes a way out for all connections that this process opens from now on. Throws as {@link certificatesIn}. */
export const takeWayOut = ({ authorities, proxies: named }: WayOut): void => {
  if (authorities !== undefined) {
    const { getCACertificates, setDefaultCACertificates } = process.getBuiltinModule("node:tls")
    setDefaultCACertificates([...getCACertificates("default"), ...certificatesIn(authorities)])
  }
  if (named !== undefined) proxies = named
}

interface Undici {
  readonly Agent: typeof Agent
  readonly ProxyAgent: new (options: Agent.Options & { readonly uri: string }) => Dispatcher
}

/** Connections to servers outside, each through its proxy if it has one. */
export interface OutsideConnections {
  readonly dispatcher: Dispatcher
  readonly destroy: () => Promise<void>
}

export const makeOutsideConnections = (undici: Undici, options: Agent.Options): OutsideConnections => {
  const direct = new undici.Agent({ ...options, allowH2: false })
  const through = new Map<string, Dispatcher>()
  const throughProxy = (uri: string): Dispatcher => {
    const known = through.get(uri) ?? new undici.ProxyAgent({ ...options, allowH2: false, uri })
    through.set(uri, known)
    return known
  }
  const dispatcher = direct.compose((dispatch) => (request, handler) => {
    const uri = request.origin === undefined ? undefined : proxyFor(new URL(request.origin), proxies)
    return uri === undefined ? dispatch(request, handler) : throughProxy(uri).dispatch(request, handler)
  })
  const destroy = async () => {
    await Promise.all([direct, ...through.values()].map((each) => each.destroy()))
  }
  return { dispatcher, destroy }
}
