/** The tools of Choir itself by what they can do, so that a skill is checked before there is an agent to ask. */
import { BUILT_IN_TABLE, type BuiltInTool } from "#schema/BuiltInTool.ts"
import type { Capability } from "#schema/Capability.ts"

/** Tools by their names, each with its capabilities. */
export type ToolCapabilities = ReadonlyMap<string, ReadonlyArray<Capability>>

export const EXEC_TOOL = "choir.exec"

/** The rows of the table by name. */
export const BUILT_IN_ROWS: ReadonlyMap<string, BuiltInTool> = new Map(Object.entries(BUILT_IN_TABLE))

export const BUILT_IN_TOOLS: ReadonlyArray<string> = [...BUILT_IN_ROWS.keys()]

export const BUILT_IN_CAPABILITIES: ToolCapabilities = new Map(
  [...BUILT_IN_ROWS].map(([name, { capabilities }]) => [name, capabilities])
)

/** The tools that every agent has. */
export const TOOLS_OF_ALL: ReadonlyArray<string> = [...BUILT_IN_ROWS].flatMap(([name, { of }]) =>
  of === undefined ? [name] : []
)

/** The arguments of Choir's own tools that are free text: a grant covers any text there. A tool that is not named has none. */
export const BUILT_IN_FREE: ReadonlyMap<string, ReadonlyArray<string>> = new Map(
  [...BUILT_IN_ROWS].flatMap(([name, { free }]) => (free === undefined ? [] : [[name, free] as const]))
)
