/** The secrets that an edit of config.json would send to servers which do not get them today. */
import { Effect, Option } from "effect"
import type { Config } from "#schema/Config.ts"
import { LAST_GOOD_FILE, loadFiles } from "#src/shared/config/configFiles.ts"
import { newServers } from "#src/shared/config/secretServers.ts"

/** Against the configuration that choird took last; none where it took none yet. */
export const unappliedServers = Effect.fn("choirctl.unappliedServers")(function* (home: string, config: Config) {
  const before = yield* Effect.option(loadFiles(home, LAST_GOOD_FILE))
  return Option.isSome(before) ? newServers(before.value.config, config) : []
})
