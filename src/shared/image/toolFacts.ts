/** Facts about tools by which the gate judges the skills that use them. Pure. */
import type { Capability } from "#schema/Capability.ts"
import { capabilitiesOf, effectOf, type ToolManifest } from "#schema/Tool.ts"
import { BUILT_IN_CAPABILITIES } from "./builtInTools.ts"

export interface ToolFacts {
  readonly capabilities: ReadonlyArray<Capability>
  /** Its results are text of strangers. */
  readonly untrusted: boolean
  /** It sees data of the user: files, memory or secrets. */
  readonly sees: boolean
  /** Something of a call leaves the machine. */
  readonly acts: boolean
  readonly locks: ReadonlyArray<string>
}

/** All tools that there are. */
export type AllToolFacts = ReadonlyMap<string, ToolFacts>

/** Locks of the built-in tools that take any. */
const LOCKS: Readonly<Record<string, ReadonlyArray<string>>> = {
  "choir.exec": ["workspace:X"],
  "choir.fs.read": ["file:S"],
  "choir.fs.search": ["file:S"],
  "choir.fs.find": ["file:S"],
  "choir.fs.write": ["file:X"],
  "choir.fs.edit": ["file:X"]
}

const REMEMBERS = /^choir\.memory\.(?:query|delta)$/u
/** Built-in tools that bring pages or mail, whose authors are strangers. */
const BRINGS = /^choir\.(?:web|browser|email)\.(?!send$)/u

/** Built-in tools that show a model what is the user's, though they read no file: mailboxes and notes. */
const READS_OWN = /^choir\.(?:email\.(?:receive|check)|notion\.query)$/u
/** They ask the account's own server, so that nothing of a call goes anywhere else. */
const ASKS_OWN = /^choir\.email\.(?:receive|check)$/u

const seesUserData = (capabilities: ReadonlyArray<Capability>) =>
  capabilities.includes("fs:read") || capabilities.includes("env:read")

const builtIn = ([name, capabilities]: readonly [string, ReadonlyArray<Capability>]) =>
  [
    name,
    {
      capabilities,
      untrusted: BRINGS.test(name),
      // A built-in tool keeps its secret to itself, so that env:read shows a model nothing.
      sees: capabilities.includes("fs:read") || REMEMBERS.test(name) || READS_OWN.test(name),
      acts: capabilities.includes("net") && !ASKS_OWN.test(name),
      locks: LOCKS[name] ?? []
    }
  ] as const

export const BUILT_IN_FACTS: AllToolFacts = new Map([...BUILT_IN_CAPABILITIES].map(builtIn))

/** The facts that a manifest states of its tool. */
export const manifestFacts = (manifest: ToolManifest): ToolFacts => {
  const capabilities = capabilitiesOf(manifest)
  const { locks, untrusted } = manifest.runtime
  return {
    capabilities,
    untrusted,
    sees: seesUserData(capabilities),
    acts: capabilities.includes("net") || effectOf(manifest) === "external",
    locks: locks.map(({ mode, resource }) => `${resource}:${mode}`)
  }
}
