/** The secrets that a configuration calls for: those of its models and bound resources, and those that tools name. */
import { Effect, Option } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { SecretName } from "#schema/Ids.ts"
import { ControlPlane, type GivenSecrets } from "./ControlPlane.ts"
import { secretBehind } from "#src/agent/settings/toolSecrets.ts"
import { secretsOfTools } from "#src/shared/image/toolNeeds.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { type ImageTool, ToolBroken } from "#src/agent/image/ImageTools.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"

const UNBOUND_FIX =
  "Name a secret of config.json, llm or core_llm, and bind the resource that it belongs to (agents.<id>.defaults)"

/** Fetches those secrets of a tool that the agent does not hold yet. An agent that would miss a secret later does not start now. */
export const requireSecrets = Effect.fnUntraced(function* ({ file, manifest }: ImageTool) {
  const plane = yield* ControlPlane
  const store = yield* SecretStore
  const { config } = (yield* AgentSettings).current()
  const broken = (reason: string) => new ToolBroken({ file, reason })
  const names = manifest.runtime.secret_resources
  const lacking = new Map<SecretName, SecretName>()
  for (const name of names) {
    const secret = yield* Effect.mapError(secretBehind(name, config), ({ message }) => broken(message))
    if ((yield* store.get(secret)) === undefined) lacking.set(secret, name)
  }
  if (lacking.size === 0) return yield* store.add(names, new Map())
  const { secrets, unbound, unset } = yield* plane.secrets([...lacking.keys()])
  for (const [secret, name] of lacking) {
    if (unbound.has(secret))
      return yield* broken(`secret_resources names "${name}", which belongs to no bound resource. ${UNBOUND_FIX}`)
    if (unset.has(secret))
      return yield* broken(
        `secret_resources names "${name}", which has no value. Set it: choirctl secret set ${secret}`
      )
  }
  yield* store.add(names, secrets)
})

const NONE: GivenSecrets = { secrets: new Map(), unbound: new Set(), unset: new Set() }

/**
 * Fetches all of them at once. A secret that choird no longer gives is left out, since it may have been revoked: its next user reports it, and
 * the agent continues without the old value (R35).
 */
export const fetchSecrets = Effect.fnUntraced(function* (config: AgentConfig, named: ReadonlySet<SecretName>) {
  const plane = yield* ControlPlane
  const ofModels = Object.values(config.models).flatMap(({ secret }) => secret ?? [])
  const wanted = new Set([...ofModels, ...secretsOfTools(config)])
  for (const name of named) {
    const secret = yield* Effect.option(secretBehind(name, config))
    if (Option.isSome(secret)) wanted.add(secret.value)
  }
  const { secrets, unbound, unset } = yield* Effect.catchTag(plane.secrets([...wanted]), "Denied", ({ message }) =>
    Effect.as(Effect.logWarning(`choird refused the secrets: ${message}`), NONE)
  )
  for (const name of unbound) yield* Effect.logWarning(`the secret "${name}" belongs to no bound resource`)
  for (const name of unset) yield* Effect.logWarning(`the secret "${name}" has no value`)
  return secrets
})
