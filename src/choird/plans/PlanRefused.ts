/** The refusal of an order about a plan. */
import { Schema } from "effect"

/** The message says what to do about it. `kind` is also the API's error type. */
export class PlanRefused extends Schema.TaggedError<PlanRefused>()("PlanRefused", {
  kind: Schema.Literals(["UNKNOWN_PLAN", "UNKNOWN_DM", "UNCLEAR_TIME", "NO_TEXT", "TOO_MANY", "NOT_OPEN"]),
  message: Schema.String
}) {}
