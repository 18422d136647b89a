/** The secrets that a configuration calls for: its models', and those that tools name (spec 14.3, 17.7). */
import { Effect, type Redacted } from "effect"
import type { AgentConfig } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { secretBehind } from "./toolSecrets.ts"

const ofModels = ({ models }: AgentConfig): ReadonlySet<SecretName> =>
  new Set(Object.values(models).flatMap(({ secret }) => secret ?? []))

/**
 * All of them at once. What a tool names and choird does not give any more is left out: the tool says so when it is called, and the
 * agent goes on.
 */
export const fetchSecrets = Effect.fnUntraced(function* (config: AgentConfig, named: ReadonlySet<SecretName>) {
  const plane = yield* ControlPlane
  const models = ofModels(config)
  const held: Map<SecretName, Redacted.Redacted> = new Map(yield* plane.secrets([...models]))
  for (const name of named) {
    const secret = yield* Effect.option(secretBehind(name, config))
    if (secret._tag === "None" || held.has(secret.value)) continue
    const fetched = yield* plane
      .secrets([secret.value])
      .pipe(
        Effect.catchTag("Denied", ({ message }) =>
          Effect.as(Effect.logWarning(`a tool's secret is not available: ${message}`), new Map())
        )
      )
    for (const [given, value] of fetched) held.set(given, value)
  }
  return held
})
