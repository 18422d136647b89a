/** Which requests a TCP listener may answer at all: a browser must not be made to ask it, by whatever page (threat model, CSRF). */
import { isLoopback } from "#schema/Transport.ts"

const LOOPBACK = ["localhost", "127.0.0.1", "::1"]

/**
 * The names by which a listener may be called: its own, those of its certificate, and this host's loopback names when it can be
 * reached by them. @param host as it is listened on, empty for every address.
 */
export const hostNames = (host: string, certified: ReadonlyArray<string>): ReadonlySet<string> => {
  const everywhere = host === "" || host === "0.0.0.0" || host === "::"
  const own = everywhere ? [] : [host]
  return new Set([...own, ...certified, ...(everywhere || isLoopback(host) ? LOOPBACK : [])])
}

const HOST = /^(?:\[(?<address>[0-9a-f:.]+)\]|(?<name>[^:[\]]+))(?::\d{1,5})?$/iu

/** Whether a Host header names the listener. The port may be another, as behind a forwarded one. */
const isNamed = (names: ReadonlySet<string>, header: string | undefined) => {
  const { address, name } = HOST.exec(header ?? "")?.groups ?? {}
  return names.has((address ?? name ?? "").toLowerCase())
}

/** Why a request is refused by its head alone. No agent sends Origin, and every page's cross-origin request does. */
export const headRefusal = (
  names: ReadonlySet<string>,
  headers: Readonly<Record<string, string | undefined>>
): { readonly status: 403 | 421; readonly message: string } | undefined => {
  const { host, origin } = headers
  if (origin !== undefined) return { status: 403, message: "requests of web pages are refused" }
  if (isNamed(names, host)) return undefined
  return { status: 421, message: "this server has another name than the Host header says" }
}
