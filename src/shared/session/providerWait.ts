/** A job that waits for its provider: its newest output is a failure that may pass. The log keeps the wait, so no restart ends it. */
import type { ChoirEvent } from "#schema/Event.ts"
import { isPassing } from "#src/shared/model/passing.ts"
import type { CoreLane } from "./State.ts"

/** Since when, and in the words of the last model that was asked. */
export interface ProviderWait {
  readonly rev: number
  readonly since: string
  readonly cause: string
}

/** The wait that an output begins, if it does. */
export const waitOf = (output: ChoirEvent | undefined): ProviderWait | undefined =>
  output?.event_type === "ModelOutput" && output.payload.error !== undefined && isPassing(output.payload.error)
    ? { rev: output.rev, since: output.created_at, cause: output.payload.error.message }
    : undefined

/** The wait of a running job. */
export const waitOfJob = (
  { output, state }: Pick<CoreLane, "output" | "state">,
  find: (rev: number) => ChoirEvent | undefined
): ProviderWait | undefined => (state === "CORE_REASONING" && output.rev > 0 ? waitOf(find(output.rev)) : undefined)
