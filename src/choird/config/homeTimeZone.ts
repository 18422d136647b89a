/** The time zone of a home: choird takes it at its start, and all that it tells, begins and hands to agents is in it. */
import { Effect } from "effect"
import type { Config } from "#schema/Config.ts"

/** Takes the zone of config.json for this process; without one the host's, or that of TZ, stays. Logs are in UTC all the same. */
export const takeTimeZone = ({ timezone }: Pick<Config, "timezone">) =>
  Effect.sync(() => {
    if (timezone !== undefined) process.env["TZ"] = timezone
  })
