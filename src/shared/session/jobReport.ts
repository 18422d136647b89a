/** A job's report, as the event of its call holds it. */
import { Option, Schema } from "effect"
import { CoreReport } from "#schema/Core.ts"
import type { ChoirEvent } from "#schema/Event.ts"

const decode = Schema.decodeUnknownOption(CoreReport)

/** The report of a `ToolCallRequested` of choir.core.report; `undefined` for anything else, which an agent may have put there. */
export const reportOf = (event: ChoirEvent | undefined): CoreReport | undefined =>
  event?.event_type === "ToolCallRequested" ? Option.getOrUndefined(decode(event.payload.input)) : undefined

/** How far it is, and its words. */
export const reportText = ({ focus, percent, phase, plan, text }: Omit<CoreReport, "kind">): string => {
  const done = plan?.filter(({ state }) => state === "done").length
  const parts = [
    ...(phase === undefined ? [] : [phase]),
    ...(percent === undefined ? [] : [`${Math.round(percent)}%`]),
    ...(plan === undefined ? [] : [`${done} of ${plan.length} steps done`]),
    ...(focus === undefined ? [] : [focus])
  ]
  return [...(parts.length === 0 ? [] : [parts.join(", ")]), text].join(" — ")
}

/** In one line, with its kind. */
export const reportLine = (report: CoreReport): string => `${report.kind}: ${reportText(report)}`
