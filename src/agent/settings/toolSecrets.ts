/**
 * The secrets of external tools: what the names of a manifest mean, and what one call is given of them. The values stay
 * in memory; a tool reads them from a descriptor, since an environment and arguments are readable in /proc (R32).
 */
import { Effect, Redacted, Result, Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { SecretName } from "#schema/Ids.ts"
import { toolSecret } from "#src/shared/image/toolSecret.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { makeJsonScrub, makeScrub } from "./scrub.ts"
import { SecretStore } from "./SecretStore.ts"

/** A secret that a tool names and the agent does not hold. */
export class SecretUnavailable extends Schema.TaggedError<SecretUnavailable>()("SecretUnavailable", {
  secret: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the secret "${this.secret}" is not available: ${this.reason}`
  }
}

/** The secrets that one call holds. They are a snapshot: a refresh meanwhile counts for the next call (R35). */
export interface CallSecrets {
  /** The values by the manifest's names, as one JSON object. */
  readonly document: Redacted.Redacted
  /** Takes the values out of a text that the tool wrote, and out of its JSON. */
  scrub(text: string): string
  scrubJson(value: Schema.Json): Schema.Json
}

/** The secret behind a name of `secret_resources`. */
export const secretBehind = (name: SecretName, config: AgentConfig): Effect.Effect<SecretName, SecretUnavailable> =>
  Effect.fromResult(
    Result.mapError(toolSecret(name, config), (reason) => new SecretUnavailable({ secret: name, reason }))
  )

/** How a tool takes its secrets for each call; `undefined` for a tool that names none. */
export const makeToolSecrets = Effect.fnUntraced(function* (names: ReadonlyArray<SecretName>) {
  const store = yield* SecretStore
  const settings = yield* AgentSettings

  const valueOf = Effect.fnUntraced(function* (name: SecretName, config: AgentConfig) {
    const secret = yield* secretBehind(name, config)
    const held = yield* store.get(secret)
    if (held === undefined) {
      const reason = `it is no longer bound, or has no value. The operator can set it: choirctl secret set ${secret}`
      return yield* new SecretUnavailable({ secret: name, reason })
    }
    return [name, Redacted.value(held)] as const
  })

  const take = Effect.suspend((): Effect.Effect<CallSecrets | undefined, SecretUnavailable> => {
    const { config } = settings.current()
    if (names.length === 0) return Effect.undefined
    return Effect.map(
      Effect.forEach(names, (name) => valueOf(name, config)),
      (entries) => {
        const values = entries.map(([, value]) => value)
        return {
          document: Redacted.make(JSON.stringify(Object.fromEntries(entries))),
          scrub: makeScrub(values),
          scrubJson: makeJsonScrub(values)
        }
      }
    )
  })
  return { take }
})
