/** The operator's endpoints about the runs of an agent's skills and jobs. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"

/** Runs that are listed where the request names no number. */
const RUNS_LISTED = 50

const wanted = (last: number | undefined) => Math.max(1, Math.trunc(last ?? RUNS_LISTED))

export const layerOperatorRuns = HttpApiBuilder.group(
  OperatorApi,
  "runs",
  Effect.fnUntraced(function* (handlers) {
    const runs = yield* Runs
    return handlers.handleAll({
      skills: ({ params: { id }, query: { last, skill } }) =>
        databaseDefect(runs.skills(id, { last: wanted(last), ...(skill === undefined ? {} : { skill }) })),
      jobs: ({ params: { id }, query: { last } }) => databaseDefect(runs.jobs(id, { last: wanted(last) }))
    })
  })
)
