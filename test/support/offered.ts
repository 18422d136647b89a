/** The tools of lanes, for texts that name some. */
import { ToolName, toWireName } from "#schema/Tool.ts"
import type { Offered } from "#src/agent/model/offeredTools.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"

/** Every built-in tool. */
export const EVERY_TOOL: Offered = new Set(BUILT_IN_TOOLS.map((name) => toWireName(ToolName.make(name))))
