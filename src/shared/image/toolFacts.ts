/** Facts about tools by which the gate judges the skills that use them. Pure. */
import type { Capability } from "#schema/Capability.ts"
import { capabilitiesOf, effectOf, type ToolManifest } from "#schema/Tool.ts"
import { BUILT_IN_ROWS } from "./builtInTools.ts"

export interface ToolFacts {
  readonly capabilities: ReadonlyArray<Capability>
  /** Its results are text of strangers. */
  readonly untrusted: boolean
  /** Its results are data of the user: files, mails, pages of an account, memory. A key that it is given and does not show is none. */
  readonly sees: boolean
  /** Something of a call leaves the machine, for a place that is not the user's own. */
  readonly acts: boolean
  /** Its writes stay in the account that it reads, so that it carries away nothing of its own results. */
  readonly ownPlace?: boolean
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
