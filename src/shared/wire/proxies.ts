/** The proxies that a host's environment names, and which of them a request takes. Pure. */
import type { Proxies } from "#schema/WayOut.ts"

/** The ways that lead past a proxy. Pages are read only from addresses that Choir has checked itself, which a proxy would hide. */
export const PROXY_LIMITS =
  "models, Telegram, speech, search, Notion and git go through the proxy of this host; web pages, mail and Postgres do not, and need a direct way"

type Environment = Readonly<Record<string, string | undefined>>

/** A variable in lower case counts first, as for curl. An empty one does not count. */
const variable = (environment: Environment, name: string): string | undefined =>
  [environment[name.toLowerCase()], environment[name]].find((value) => value !== undefined && value !== "")

/** Without a scheme it is one of HTTP, as for curl. */
const withScheme = (address: string) => (address.includes("://") ? address : `http://${address}`)

export const proxiesOf = (environment: Environment): Proxies => {
  const [http, https] = [variable(environment, "HTTP_PROXY"), variable(environment, "HTTPS_PROXY")]
  const none = variable(environment, "NO_PROXY")
  return {
    ...(http === undefined ? {} : { http: withScheme(http) }),
    ...(https === undefined ? {} : { https: withScheme(https) }),
    ...(none === undefined ? {} : { none })
  }
}

/** The variables whose proxies cannot be used, with the reason; what follows a scheme may be a password, and is never repeated. */
export const proxyProblems = ({ http, https }: Proxies): ReadonlyArray<string> =>
  Object.entries({ HTTP_PROXY: http, HTTPS_PROXY: https }).flatMap(([name, address]) => {
    if (address === undefined) return []
    const url = URL.parse(address)
    if (url === null || url.hostname === "") return [`${name} is not an address`]
    return ["http:", "https:"].includes(url.protocol)
      ? []
      : [`${name} names a proxy of ${url.protocol.slice(0, -1)}, and Choir knows those of http and https`]
  })

/** Names and addresses of this host itself, which no proxy could reach. */
const isOwn = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/u.test(host)

/** Whether an entry of NO_PROXY covers a host: `*`, a name with all below it, with or without a leading dot or star, or either with a port. */
const covers = (entry: string, host: string, port: string): boolean => {
  const [, name = "", only] = /^(.*?)(?::(\d+))?$/u.exec(entry.replace(/^\*?\.(?=.)/u, "")) ?? []
  if (only !== undefined && only !== port) return false
  return entry === "*" || host === name || host.endsWith(`.${name}`)
}

/** The proxy for a request to an origin; `undefined` for one that goes there by itself. */
export const proxyFor = (origin: URL, { http, https, none = "" }: Proxies): string | undefined => {
  const proxy = origin.protocol === "https:" ? https : http
  const host = origin.hostname.toLowerCase()
  if (proxy === undefined || isOwn(host)) return undefined
  const port = origin.port === "" ? (origin.protocol === "https:" ? "443" : "80") : origin.port
  const entries = none
    .toLowerCase()
    .split(/[\s,]+/u)
    .filter((entry) => entry !== "")
  return entries.some((entry) => covers(entry, host, port)) ? undefined : proxy
}
