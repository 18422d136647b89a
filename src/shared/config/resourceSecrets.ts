/** Every resource of config.json that may name a secret, and the address that the secret is sent to. Pure. */
import type { Config } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import { BOUND_SECTIONS } from "#schema/Resources.ts"

type Path = ReadonlyArray<string>

export interface ResourceSecret {
  /** The key that names the secret. */
  readonly path: Path
  readonly secret: SecretName | undefined
  /** The key of the address, where the resource has one of its own that is set. */
  readonly endpoint: { readonly path: Path; readonly url: string } | undefined
}

interface Resource {
  readonly secret?: SecretName
  readonly endpoint?: string
}

const one = (path: Path, { endpoint, secret }: Resource = {}, key = "endpoint"): ResourceSecret => ({
  path: [...path, "secret"],
  secret,
  endpoint: endpoint === undefined ? undefined : { path: [...path, key], url: endpoint }
})

/** In the order of config.json's sections. */
export const resourceSecrets = (config: Config): ReadonlyArray<ResourceSecret> => {
  const { email_accounts, git_identities, models, notion_integrations, postgres, search, stt, telemetry, tts } = config
  const tables = { models, tts, stt, git_identities, notion_integrations, email_accounts, search }
  return [
    ...Object.entries<Readonly<Record<string, Resource>>>(tables).flatMap(([section, table]) =>
      Object.entries(table).map(([name, resource]) => one([section, name], resource))
    ),
    ...Object.entries(config.gateways).flatMap(([name, gateway]) =>
      gateway.type === "telegram"
        ? [one(["gateways", name], { secret: gateway.secret, endpoint: gateway.api_root }, "api_root")]
        : []
    ),
    one(["embedding"], config.embedding),
    one(["telemetry", "otlp"], telemetry.otlp),
    one(["telemetry", "prometheus"], telemetry.prometheus),
    ...("url_secret" in postgres
      ? [{ path: ["postgres", "url_secret"], secret: postgres.url_secret, endpoint: undefined }]
      : []),
    ...("secret" in postgres ? [{ path: ["postgres", "secret"], secret: postgres.secret, endpoint: undefined }] : [])
  ]
}

/** The sections whose secrets a binding of a start can give to an agent; a voice profile names a service of `tts`. */
const GIVEN: ReadonlySet<string> = new Set([...BOUND_SECTIONS, "tts"])

/** Every secret that some binding of a start could give to an agent. */
export const bindableSecrets = (config: Config): ReadonlySet<string> =>
  new Set(resourceSecrets(config).flatMap(({ path, secret }) => (GIVEN.has(path[0] ?? "") ? (secret ?? []) : [])))
