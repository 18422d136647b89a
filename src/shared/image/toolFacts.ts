/** Facts about tools by which the gate judges the skills that use them. Pure. */
import type { Capability } from "#schema/Capability.ts"
import { capabilitiesOf, effectOf, type ToolManifest } from "#schema/Tool.ts"
import { BUILT_IN_CAPABILITIES } from "./builtInTools.ts"

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

type Facts = Omit<ToolFacts, "capabilities" | "locks"> & { readonly locks?: ReadonlyArray<string> }

const NOTHING: Facts = { sees: false, untrusted: false, acts: false }
const DATA: Facts = { ...NOTHING, sees: true }
/** A page's address and a search's words go to strangers, whose text comes back. */
const WEB: Facts = { ...NOTHING, untrusted: true, acts: true }
/** The user's own mailbox, in which anybody may write. Reading it tells nobody anything. */
const MAILBOX: Facts = { ...DATA, untrusted: true }

/** A row for each built-in tool. */
const FACTS: Readonly<Record<string, Facts>> = {
  // What a program fetches by itself is not seen: its lane becomes untrusted when it runs.
  "choir.exec": { ...DATA, acts: true, locks: ["workspace:X"] },
  "choir.fs.read": { ...DATA, locks: ["file:S"] },
  "choir.fs.search": { ...DATA, locks: ["file:S"] },
  "choir.fs.find": { ...DATA, locks: ["file:S"] },
  "choir.fs.write": { ...NOTHING, locks: ["file:X"] },
  "choir.fs.edit": { ...DATA, locks: ["file:X"] },
  // It goes to the chat that the agent answers, which its words reach anyway.
  "choir.fs.send": { ...DATA, locks: ["choirtmp:X", "file:S"] },
  "choir.core.spawn": NOTHING,
  "choir.core.inject": NOTHING,
  "choir.core.cancel": NOTHING,
  "choir.core.list": NOTHING,
  "choir.core.report": NOTHING,
  "choir.core.writeback": NOTHING,
  // Memory keeps what pages and mails said, too.
  "choir.memory.query": { ...DATA, untrusted: true },
  "choir.memory.delta": { ...DATA, untrusted: true },
  "choir.memory.upsert": NOTHING,
  "choir.memory.delete": NOTHING,
  "choir.memory.compact": NOTHING,
  "choir.propose.tool": NOTHING,
  "choir.propose.skill": NOTHING,
  "choir.propose.config_change": NOTHING,
  "choir.propose.repo_change": NOTHING,
  "choir.skill.start": NOTHING,
  "choir.skill.transition": NOTHING,
  "choir.skill.list": NOTHING,
  // It attaches files.
  "choir.email.send": { ...DATA, acts: true },
  "choir.email.receive": MAILBOX,
  "choir.email.check": MAILBOX,
  "choir.web.fetch": WEB,
  "choir.web.browse": WEB,
  "choir.web.search": WEB,
  // Others write in shared pages, and read what it appends to them.
  "choir.notion.query": { ...DATA, untrusted: true, acts: true, ownPlace: true },
  // Its text goes where the operator lets the agent speak, as its prompts go to a model, and the sound to the user.
  "choir.tts.speak": { ...NOTHING, locks: ["choirtmp:X"] }
}

/** A tool without a row is unknown to the gate. */
export const BUILT_IN_FACTS: AllToolFacts = new Map(
  [...BUILT_IN_CAPABILITIES].flatMap(([name, capabilities]) => {
    const facts = Object.hasOwn(FACTS, name) ? FACTS[name] : undefined
    return facts === undefined ? [] : [[name, { locks: [], ...facts, capabilities }] as const]
  })
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
