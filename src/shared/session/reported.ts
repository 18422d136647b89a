/** A job's report, as the event of its call holds it. */
import { Option, Schema } from "effect"
import { CoreReport } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"

const decode = Schema.decodeUnknownOption(CoreReport)

/** The report of a `ToolCallRequested` of choir.core.report; `undefined` for anything else, which an agent may have put there. */
export const reported = (event: ChoirEvent | undefined): CoreReport | undefined =>
  event?.event_type === "ToolCallRequested" ? Option.getOrUndefined(decode(event.payload.input)) : undefined

/** In one line: how far it is, and its words. */
export const reportLine = ({ focus, kind, percent, phase, plan, text }: CoreReport): string => {
  const done = plan?.filter(({ state }) => state === "done").length
  const parts = [
    ...(phase === undefined ? [] : [phase]),
    ...(percent === undefined ? [] : [`${Math.round(percent)}%`]),
    ...(plan === undefined ? [] : [`${done} of ${plan.length} steps done`]),
    ...(focus === undefined ? [] : [focus])
  ]
  return `${kind}: ${[...(parts.length === 0 ? [] : [parts.join(", ")]), text].join(" — ")}`
}
