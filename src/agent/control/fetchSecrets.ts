/** The secrets that a configuration calls for: its models', and those that tools name. */
import { Effect, type Redacted } from "effect"
import type { AgentConfig } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { secretBehind } from "#src/agent/settings/toolSecrets.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { type ImageTool, ToolBroken } from "#src/agent/image/ImageTools.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"

const UNBOUND_FIX =
  "Name a secret of config.json, llm or core_llm, and bind the resource that it belongs to (agents.<id>.defaults)"

/** Asks choird for what the agent does not hold yet. An agent that would miss a secret later does not start now. */
export const requireSecrets = Effect.fnUntraced(function* ({ file, manifest }: ImageTool) {
  const plane = yield* ControlPlane
  const store = yield* SecretStore
  const { config } = (yield* AgentSettings).current()
  const broken = (reason: string) => new ToolBroken({ file, reason })
  for (const name of manifest.runtime.secret_resources) {
    const secret = yield* Effect.mapError(secretBehind(name, config), ({ message }) => broken(message))
    if ((yield* store.get(secret)) !== undefined) {
      yield* store.add([name], new Map())
      continue
    }
    const fetched = plane.secrets([secret]).pipe(
      Effect.catchTag("Denied", ({ reason, type }) => {
        const fix = type === "UNBOUND" ? UNBOUND_FIX : `Set it: choirctl secret set ${secret}`
        return Effect.fail(broken(`secret_resources names "${name}": ${reason}. ${fix}`))
      })
    )
    yield* store.add([name], yield* fetched)
  }
})

const ofModels = ({ models }: AgentConfig): ReadonlySet<SecretName> =>
  new Set(Object.values(models).flatMap(({ secret }) => secret ?? []))

/**
 * All of them at once. What choird does not give any more is left out, since it may have been revoked: who needs it says so when it is
 * called, and the agent goes on without the old value (R35).
 */
export const fetchSecrets = Effect.fnUntraced(function* (config: AgentConfig, named: ReadonlySet<SecretName>) {
  const plane = yield* ControlPlane
  const models = [...ofModels(config)]
  const single = (secret: SecretName, whose: string) =>
    Effect.catchTag(plane.secrets([secret]), "Denied", ({ message }) =>
      Effect.as(
        Effect.logWarning(`${whose} secret is not available: ${message}`),
        new Map<SecretName, Redacted.Redacted>()
      )
    )
  const all = Effect.catchTag(plane.secrets(models), "Denied", () =>
    Effect.map(
      Effect.forEach(models, (secret) => single(secret, "a model's")),
      (maps) => new Map(maps.flatMap((map) => [...map]))
    )
  )
  const held: Map<SecretName, Redacted.Redacted> = new Map(yield* all)
  const git = config.git_identity?.secret
  if (git !== undefined && !held.has(git))
    for (const [given, value] of yield* single(git, "the git identity's")) held.set(given, value)
  for (const name of named) {
    const secret = yield* Effect.option(secretBehind(name, config))
    if (secret._tag === "None" || held.has(secret.value)) continue
    for (const [given, value] of yield* single(secret.value, "a tool's")) held.set(given, value)
  }
  return held
})
