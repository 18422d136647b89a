/** The configuration that choird last worked with, kept in the home in case config.json breaks (R59). */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { Config } from "#schema/Config.ts"
import { CONFIG_FILE, ConfigRefused, LAST_GOOD_FILE } from "#src/shared/config/configFiles.ts"
import { systemWords, writeWhole } from "#src/shared/files/writeWhole.ts"

/** Writes it atomically, readable only for its owner. A full disk stops nobody from working. */
export const keepLastGood = Effect.fn("LastGood.keep")(function* (home: string, config: Config) {
  yield* writeWhole(join(home, LAST_GOOD_FILE), `${JSON.stringify(config, undefined, 2)}\n`).pipe(
    Effect.catch((error) =>
      Effect.logWarning("the configuration could not be kept as the last good one", systemWords(error))
    )
  )
})

/** Adds to a refused config.json how to start without it, if that is possible. */
export const orLastGood = (home: string) => (error: ConfigRefused) =>
  error.file === join(home, CONFIG_FILE) && existsSync(join(home, LAST_GOOD_FILE))
    ? new ConfigRefused({
        file: error.file,
        problems: error.problems,
        hint: `${error.hint}. To start with the last working one until then: choird --home ${home} --last-good`
      })
    : error
