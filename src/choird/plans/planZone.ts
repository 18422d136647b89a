/** The time zone of a plan. It was known when the plan was made, but another version of the host's data may lack it. Pure. */
import { DateTime, Option } from "effect"
import type { PlanSummary } from "#schema/Plan.ts"

type Zoned = Pick<PlanSummary, "zone">

/** In which times are shown where their own zone is not known. */
export const UTC = DateTime.zoneMakeNamedUnsafe("UTC")

/** Undefined where the host does not know it. */
export const zoneOfPlan = ({ zone }: Zoned): DateTime.TimeZone | undefined =>
  Option.getOrUndefined(DateTime.zoneMakeNamed(zone))

export const unknownZone = ({ zone }: Zoned): string => `time zone ${zone} is not known to this host`
