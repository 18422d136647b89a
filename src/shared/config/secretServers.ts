/** The servers that each secret is sent to: a key is its owner's at one server, and must not reach another one by accident. Pure. */
import type { Config } from "#schema/Config.ts"
import { ResourceName, type SecretName } from "#schema/Ids.ts"
import { resourceSecrets } from "./resourceSecrets.ts"

export interface SecretServer {
  readonly secret: SecretName
  /** The resource of config.json, such as `models.main`. */
  readonly resource: string
  /** Scheme, host and port, a mail server or a remote of git; the resource where config.json gives it no address. */
  readonly server: string
}

/** Scheme, host and port of an address; nothing for a text that is not an address. */
export const originOf = (address: string): string | undefined => {
  const origin = URL.parse(address)?.origin
  return origin === "null" ? undefined : origin
}

/** The places that get the secret of a resource which has no address of one server: those of a mail account, a git identity and a database. */
const placesOf = (
  { email_accounts, git_identities, postgres }: Config,
  [section, named = ""]: ReadonlyArray<string>
): ReadonlyArray<string> => {
  if (section === "postgres") return "host" in postgres ? [`${postgres.host}:${postgres.port}`] : []
  if (section !== "email_accounts" && section !== "git_identities") return []
  const name = ResourceName.make(named)
  if (section === "email_accounts") {
    const account = email_accounts[name]
    if (account === undefined) return []
    return [`${account.imap_host}:${account.imap_port}`, `${account.smtp_host}:${account.smtp_port}`]
  }
  return git_identities[name]?.remotes ?? []
}

/** Each use of a secret in config.json, in its order. */
export const secretServers = (config: Config): ReadonlyArray<SecretServer> =>
  resourceSecrets(config).flatMap(({ endpoint, path, secret }) => {
    if (secret === undefined) return []
    const resource = path.slice(0, -1).join(".")
    const origin = originOf(endpoint?.url ?? "")
    const places = origin === undefined ? placesOf(config, path) : [origin]
    return (places.length === 0 ? [resource] : places).map((server) => ({ secret, resource, server }))
  })

/** Servers as a person reads them, with the resources that are there. */
export const serversText = (uses: ReadonlyArray<SecretServer>): string =>
  [...Map.groupBy(uses, ({ server }) => server)]
    .map(([server, all]) => {
      const resources = all.map(({ resource }) => resource).filter((resource) => resource !== server)
      return resources.length === 0 ? server : `${server} (${resources.join(", ")})`
    })
    .join(" and ")

/** The secrets that a change of the configuration sends to a server that did not get them before; a secret that is new has no such server. */
export const newServers = (
  before: Config,
  after: Config
): ReadonlyArray<{ readonly path: string; readonly message: string }> => {
  const known = secretServers(before)
  return secretServers(after).flatMap(({ resource, secret, server }) => {
    const uses = known.filter((use) => use.secret === secret)
    if (uses.length === 0 || uses.some((use) => use.server === server)) return []
    return [
      {
        path: `${resource}.secret`,
        message: `the secret "${secret}" would go to ${server}, which does not get it today; it goes to ${serversText(uses)}`
      }
    ]
  })
}
