/** A job's own account of its work, as the event of its call holds it, and whether a job owes one. */
import { Option, Schema } from "effect"
import { builtIn } from "#schema/BuiltInTool.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { Writeback } from "#schema/Writeback.ts"

/** The tool through which a job gives its account. */
export const CORE_WRITEBACK = builtIn("choir.core.writeback")

const decode = Schema.decodeUnknownOption(Writeback)

/** The account of a `ToolCallRequested`; `undefined` for anything else, which an agent may have put there. */
export const writtenBack = (event: ChoirEvent | undefined): Writeback | undefined =>
  event?.event_type === "ToolCallRequested" && event.payload.tool === CORE_WRITEBACK
    ? Option.getOrUndefined(decode(event.payload.input))
    : undefined

/** A job with a profile ends with an account of its work. */
export const owesWriteback = (started: ChoirEvent | undefined): boolean =>
  started?.event_type === "CoreStarted" && started.payload.start.agent_type !== undefined
