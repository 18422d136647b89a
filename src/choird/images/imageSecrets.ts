/** The secrets that an image's tools name, compared with those that the agent may be given: an image that lacks one cannot run. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { AgentId, SecretName } from "#schema/Ids.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { agentConfig, boundSecrets } from "#src/choird/config/agentShare.ts"
import { hasValue } from "#src/shared/config/configFiles.ts"
import { bindableSecrets } from "#src/shared/config/resourceSecrets.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { readToolManifest, type ToolScope } from "#src/shared/image/toolManifest.ts"
import { toolSecret } from "#src/shared/image/toolSecret.ts"

/** The bindings that decide about secrets. */
type Bound = Omit<ResourceBindings, "dm">

/** The bindings of a start without flags. */
export const defaultBindings = (config: Config, agent_id: AgentId): Bound | undefined => {
  const defaults = Object.hasOwn(config.agents, agent_id) ? config.agents[agent_id]?.defaults : undefined
  return defaults === undefined ? undefined : { ...defaults, core_llm: defaults.core_llm ?? defaults.llm }
}

/** The reason why a tool of the agent could not be given the secret of a name, with a fix; `undefined` when it could. */
export const secretProblem =
  (config: Config, secrets: SecretsFile, agent_id: AgentId, bindings: Bound) =>
  (name: SecretName): string | undefined => {
    const found = toolSecret(name, agentConfig(config, bindings))
    if (Result.isFailure(found)) return `there is no secret behind "${name}": ${found.failure}`
    const secret = found.success
    const bound = boundSecrets(config, bindings)
    if (!bound.has(secret)) {
      const meant = nearestWord(secret, bound)
      const choice = [...bound].join(", ") || "none"
      return `the secret "${secret}" belongs to nothing that ${agent_id} is bound to (it has: ${choice})${
        meant === undefined ? `; bind its resource in agents.${agent_id}.defaults` : `; did you mean ${meant}?`
      }`
    }
    return hasValue(secrets, secret)
      ? undefined
      : `the secret "${secret}" has no value: choirctl secret set ${secret} && choirctl secret apply`
  }

/** The same for a build: a start may name other resources than the defaults, and is checked again with them. */
export const buildSecretProblem = (config: Config, secrets: SecretsFile, agent_id: AgentId, bindings: Bound) => {
  const problemOf = secretProblem(config, secrets, agent_id, bindings)
  const bindable = bindableSecrets(config)
  return (name: SecretName) => (bindable.has(name) && hasValue(secrets, name) ? undefined : problemOf(name))
}

/** The readable manifests of a folder of the image; the agent reports the others when it starts. */
const manifestsIn = (path: string, scope: ToolScope) => {
  const folder = join(path, "choir", "tools", scope)
  const names = Result.getOrElse(
    Result.try(() => readdirSync(folder)),
    () => []
  )
  return names
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .flatMap((name) => {
      const text = Result.try(() => readFileSync(join(folder, name), "utf8"))
      const read = Result.flatMap(text, (content) => readToolManifest(scope, content))
      return Result.isSuccess(read) ? [read.success.manifest] : []
    })
}

/** The readable manifests of the image at `path`, the global ones first. */
export const toolManifests = (path: string) => [...manifestsIn(path, "global"), ...manifestsIn(path, "agent")]

/** The first tool of the image at `path` that would lack a secret, and the reason. */
export const missingToolSecret = (
  path: string,
  problemOf: (name: SecretName) => string | undefined
): string | undefined => {
  for (const { llm, runtime } of toolManifests(path)) {
    const problem = runtime.secret_resources.map(problemOf).find((found) => found !== undefined)
    if (problem !== undefined) return `the tool ${llm.name} cannot be used: ${problem}`
  }
  return undefined
}
