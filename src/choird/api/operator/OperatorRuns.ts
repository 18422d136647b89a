/** The operator's endpoints about the runs of an agent's skills and jobs. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { imageProfiles } from "#src/choird/images/ImageFolder.ts"
import { newestImage } from "./newestImage.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"

/** Runs that are listed where the request names no number. */
const RUNS_LISTED = 50

const wanted = (last: number | undefined) => Math.max(1, Math.trunc(last ?? RUNS_LISTED))

export const layerOperatorRuns = HttpApiBuilder.group(
  OperatorApi,
  "runs",
  Effect.fnUntraced(function* (handlers) {
    const runs = yield* Runs
    const newest = yield* newestImage
    return handlers.handleAll({
      skills: ({ params: { id }, query: { last, skill } }) =>
        databaseDefect(runs.skills(id, { last: wanted(last), ...(skill === undefined ? {} : { skill }) })),
      jobs: ({ params: { id }, query: { last, orphans } }) =>
        databaseDefect(runs.jobs(id, { last: wanted(last), orphans: orphans === "true" })),
      profiles: Effect.fn("OperatorApi.listProfiles")(function* ({ params: { id } }) {
        const profiles = yield* newest(id, imageProfiles)
        const histories = yield* databaseDefect(runs.history(id))
        return profiles.map((profile) => ({ profile, history: histories[profile.agent_type] ?? null }))
      })
    })
  })
)
