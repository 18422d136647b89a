/** The configuration that choird last worked with, kept in the home for the day when config.json is broken (R59). */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { Config } from "#schema/Config.ts"
import { CONFIG_FILE, ConfigRefused, LAST_GOOD_FILE } from "#src/shared/configFiles.ts"

/** For its owner alone, and whole or not at all. A disk that does not take it keeps nobody from working. */
export const keepLastGood = Effect.fn("LastGood.keep")(function* (home: string, config: Config) {
  const place = join(home, LAST_GOOD_FILE)
  const fresh = join(home, `.${LAST_GOOD_FILE}`)
  yield* Effect.try(() => {
    rmSync(fresh, { force: true })
    const descriptor = openSync(fresh, "wx", 0o600)
    try {
      // One write may take a part and say nothing, as on a disk that is nearly full.
      writeFileSync(descriptor, `${JSON.stringify(config, undefined, 2)}\n`)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(fresh, place)
  }).pipe(
    Effect.catch(({ cause }) =>
      Effect.logWarning("the configuration could not be kept as the last good one", String(cause))
    )
  )
})

/** A refused config.json with the way to go on without it, where there is one. */
export const orLastGood = (home: string) => (error: ConfigRefused) =>
  error.file === join(home, CONFIG_FILE) && existsSync(join(home, LAST_GOOD_FILE))
    ? new ConfigRefused({
        file: error.file,
        problems: error.problems,
        hint: `${error.hint}. Until then, what worked last: choird --home ${home} --last-good`
      })
    : error
