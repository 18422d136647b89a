/** Facts about tools by which the gate judges the skills that use them. Pure. */
import type { BuiltInTool } from "#schema/BuiltInTool.ts"
import { capabilitiesOf, effectOf, type ToolManifest } from "#schema/Tool.ts"
import { BUILT_IN_ROWS } from "./builtInTools.ts"

/** The facts of one tool, by the table of built-in tools or by its manifest. */
export interface ToolFacts extends Pick<BuiltInTool, "acts" | "capabilities" | "ownPlace" | "sees" | "untrusted"> {
  readonly locks: ReadonlyArray<string>
}

/** All tools that there are. */
export type AllToolFacts = ReadonlyMap<string, ToolFacts>

/** The facts of each built-in tool. */
export const BUILT_IN_FACTS: AllToolFacts = new Map(
  [...BUILT_IN_ROWS].map(([name, { acts, capabilities, locks = [], ownPlace, sees, untrusted }]) => [
    name,
    { acts, capabilities, locks, sees, untrusted, ...(ownPlace === undefined ? {} : { ownPlace }) }
  ])
)

/** The facts that a manifest states of its tool. */
export const manifestFacts = (manifest: ToolManifest): ToolFacts => {
  const capabilities = capabilitiesOf(manifest)
  const { locks, untrusted } = manifest.runtime
  return {
    capabilities,
    untrusted,
    sees: capabilities.includes("fs:read"),
    acts: capabilities.includes("net") || effectOf(manifest) === "external",
    locks: locks.map(({ mode, resource }) => `${resource}:${mode}`)
  }
}
