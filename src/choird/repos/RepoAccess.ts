/**
 * The credentials for an agent's repository: the secret of the agent's git identity, for the remotes that the identity lists and no
 * other (D14). Everything else is reached as the user that runs choird.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import type { Config } from "#schema/Config.ts"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { hasValue } from "#src/shared/config/configFiles.ts"
import type { GitCredential } from "#src/shared/git/gitCredential.ts"
import { coversHttps, coversSsh, sshAddress } from "#src/shared/git/gitRemotes.ts"
import type { CheckedSource } from "./RepoSource.ts"

/** The credentials for a repository's remote, of an agent by its default identity, or of the one that `identity` names. */
export type RepoAccess = (
  agent_id: AgentId,
  source: CheckedSource,
  identity?: ResourceName
) => Effect.Effect<CheckedSource>

/** Without its layer nobody has credentials. */
export const RepoAccess = Context.Reference<RepoAccess>("choir/choird/repos/RepoAccess", {
  defaultValue: () => (_, source) => Effect.succeed(source)
})

const HTTPS = /^https:\/\/(?<host>[A-Za-z0-9.:[\]-]+)(?<path>\/.*)$/u
const KEY = /^-----BEGIN [A-Z ]*PRIVATE KEY-----/u

/** A secret is `user:password`, or a token alone. */
const password = (url: string, { remotes }: GitIdentity, secret: string): GitCredential | undefined => {
  const { host, path } = HTTPS.exec(url)?.groups ?? {}
  if (host === undefined || path === undefined || !coversHttps(remotes, { host, path })) return undefined
  const text = secret.trim()
  if (KEY.test(text) || /[\n\r\0]/u.test(text)) return undefined
  const colon = text.indexOf(":")
  const user = colon < 0 ? "x-access-token" : text.slice(0, colon)
  return { type: "password", host, user, password: Redacted.make(text.slice(colon + 1)) }
}

const key = (url: string, { known_hosts, remotes }: GitIdentity, secret: string): GitCredential | undefined => {
  const address = sshAddress(url)
  if (address === undefined || !coversSsh(remotes, address) || !KEY.test(secret)) return undefined
  const hosts = known_hosts === undefined ? {} : { known_hosts }
  return { type: "key", key: Redacted.make(secret), ...hosts }
}

const credentialFor = (
  { transport, url }: CheckedSource,
  identity: GitIdentity,
  secret: Redacted.Redacted
): GitCredential | undefined => {
  if (transport === "file") return undefined
  return (transport === "https" ? password : key)(url, identity, Redacted.value(secret))
}

/** The reason why nobody could push over ssh: an agent must not use the keys of the user that runs choird. */
export const pushProblem = ({ credential, transport }: CheckedSource): string | undefined =>
  transport === "ssh" && credential === undefined
    ? "it cannot be pushed: over ssh choird uses only the key of the agent's git identity, which has none for this host. The operator adds the host to the identity's remotes in config.json"
    : undefined

/** The identity that is named, else the agent's default one. */
export const identityOf = (config: Config, agent_id: AgentId, named?: ResourceName): GitIdentity | undefined => {
  const agent = Object.hasOwn(config.agents, agent_id) ? config.agents[agent_id] : undefined
  const name = named ?? agent?.defaults.git_identity
  return name !== undefined && Object.hasOwn(config.git_identities, name) ? config.git_identities[name] : undefined
}

/** An agent's repository with its credentials, by a configuration and its secrets. */
export const accessBy =
  (config: Config, secrets: SecretsFile) =>
  (agent_id: AgentId, source: CheckedSource, named?: ResourceName): CheckedSource => {
    const identity = identityOf(config, agent_id, named)
    const secret = identity !== undefined && hasValue(secrets, identity.secret) ? secrets[identity.secret] : undefined
    if (identity === undefined || secret === undefined) return source
    const credential = credentialFor(source, identity, secret)
    return credential === undefined ? source : { ...source, credential }
  }

/** Credentials by the running configuration. */
export const layerRepoAccess = Layer.effect(
  RepoAccess,
  Effect.map(ConfigStore, ({ current, secrets }) =>
    Effect.fn("RepoAccess")(function* (agent_id, source, named) {
      const { config } = yield* current
      return accessBy(config, yield* secrets)(agent_id, source, named)
    })
  )
)
