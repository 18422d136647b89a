/** A double of what changes the configuration. */
import { Effect, Layer } from "effect"
import type { Config } from "#schema/Config.ts"
import type { ConfigChange } from "#schema/ConfigApi.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { refuse } from "#src/choird/reconfiguration/ConfigurationRefused.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"

const NOTHING_LOADED = { changes: [], repos: [], warnings: [] }

const change: ConfigChange = { path: "a", change: "changed", class: "hot-reload", command: "choirctl config apply" }

/** Loads and applies whatever it is asked to; there is a version 1 and nothing staged. */
export const reconfiguration = (effect: (what: string) => Effect.Effect<void>, config: Config) => {
  const applied = { version: 2, previous: 1, applied: [change], pending: [] }
  const changes = Layer.mock(Reconfiguration, {
    load: (who, progress) =>
      Effect.andThen(progress("fetch global"), Effect.as(effect(`${who} loads`), NOTHING_LOADED)),
    diff: Effect.succeed([change]),
    apply: () => Effect.fail(refuse("NOTHING_STAGED", "nothing is staged", "choirctl config load")),
    rollback: (who, version) =>
      version === 1
        ? Effect.as(effect(`${who} goes back to ${version}`), applied)
        : Effect.fail(refuse("NO_SUCH_VERSION", "there is none", "choirctl config history")),
    applySecrets: (who) => Effect.as(effect(`${who} applies secrets`), { version: 2, changed: [], pending: [] }),
    history: Effect.succeed([]),
    version: () => Effect.succeed(config)
  })
  const writes = Layer.mock(ConfigWriter, { apply: (who) => effect(`${who} writes config.json`) })
  return Layer.merge(changes, writes)
}
