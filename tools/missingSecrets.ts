/** The secrets without a value that keep an agent from starting with its models. */
import type { Config } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { hasValue } from "#src/shared/config/configFiles.ts"

/** The missing secrets of the agent's models and of the models that these fall back to, each once. */
export const missingSecrets = (
  { agents, models }: Pick<Config, "agents" | "models">,
  secrets: SecretsFile,
  agent: string
): ReadonlyArray<SecretName> => {
  const defaults = Object.entries(agents).find(([id]) => id === agent)?.[1].defaults
  if (defaults === undefined) return []
  const bound = [defaults.llm, defaults.core_llm ?? defaults.llm]
  const names = [...bound, ...bound.flatMap((name) => models[name]?.fallback ?? [])]
  const wanted = names.flatMap((name) => models[name]?.secret ?? [])
  return [...new Set(wanted)].filter((name) => !hasValue(secrets, name))
}
