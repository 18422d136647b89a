/** The tools of Choir itself: the one table that the registry, the gate, lists for people and docs/tools.md are typed by or compared with. */
import type { Capability } from "./Capability.ts"
import { type ToolEffect, ToolName } from "./Tool.ts"

export interface BuiltInTool {
  /** Its greatest effect. */
  readonly effect: ToolEffect
  readonly lanes: "both" | "edge" | "core"
  /** A command can do whatever its programs can. Long-term memory and a job's own report are Choir's and need nothing. */
  readonly capabilities: ReadonlyArray<Capability>
  /** Its results are text of strangers. */
  readonly untrusted: boolean
  /** Its results are data of the user: files, mails, pages of an account, memory. A key that it uses and never shows does not count. */
  readonly sees: boolean
  /** Something of a call leaves the machine, for a place that is not the user's own. */
  readonly acts: boolean
  /** Its writes stay in the account that it reads, so that it carries away nothing of its own results. */
  readonly ownPlace?: boolean
  readonly locks?: ReadonlyArray<string>
  /** Its arguments that are free text: a grant covers any text there. */
  readonly free?: ReadonlyArray<string>
  /** Only agents have it which are bound to a resource, or whose image has job profiles or many skills. */
  readonly of?: "some"
  /** Its purpose in a sentence, for people. */
  readonly sentence: string
}

type Facts = Pick<BuiltInTool, "acts" | "sees" | "untrusted">

const NOTHING: Facts = { sees: false, untrusted: false, acts: false }
const DATA: Facts = { ...NOTHING, sees: true }
/** A page's address and a search's words go to strangers, whose text comes back. */
const WEB: Facts = { ...NOTHING, untrusted: true, acts: true }
/** The user's own mailbox, in which anybody may write. Reading it tells nobody anything. */
const MAILBOX: Facts = { ...DATA, untrusted: true }

const TABLE = {
  // What a program fetches by itself is not seen: its lane becomes untrusted when it runs.
  "choir.exec": {
    effect: "workspace",
    lanes: "both",
    capabilities: ["fs:read", "fs:write", "net", "exec"],
    ...DATA,
    acts: true,
    locks: ["workspace:X"],
    sentence: "Run a shell command in the workspace."
  },
  "choir.fs.read": {
    effect: "none",
    lanes: "both",
    capabilities: ["fs:read"],
    ...DATA,
    locks: ["file:S"],
    sentence: "Read a file or list a folder."
  },
  "choir.fs.write": {
    effect: "workspace",
    lanes: "both",
    capabilities: ["fs:write"],
    ...NOTHING,
    locks: ["file:X"],
    sentence: "Create, overwrite or append to a text file."
  },
  "choir.fs.edit": {
    effect: "workspace",
    lanes: "both",
    capabilities: ["fs:read", "fs:write"],
    ...DATA,
    locks: ["file:X"],
    sentence: "Replace text in a file."
  },
  "choir.fs.search": {
    effect: "none",
    lanes: "both",
    capabilities: ["fs:read"],
    ...DATA,
    locks: ["file:S"],
    sentence: "Search the text of files."
  },
  "choir.fs.find": {
    effect: "none",
    lanes: "both",
    capabilities: ["fs:read"],
    ...DATA,
    locks: ["file:S"],
    sentence: "Find files by name."
  },
  // It goes to the chat that the agent answers, which its words reach anyway.
  "choir.fs.send": {
    effect: "none",
    lanes: "both",
    capabilities: ["fs:read"],
    ...DATA,
    locks: ["choirtmp:X", "file:S"],
    sentence: "Send files to the user."
  },
  "choir.core.spawn": {
    effect: "none",
    lanes: "edge",
    capabilities: ["agent:spawn"],
    ...NOTHING,
    sentence: "Start a job in the background."
  },
  "choir.core.inject": {
    effect: "none",
    lanes: "edge",
    capabilities: ["agent:spawn"],
    ...NOTHING,
    sentence: "Send an instruction to a job."
  },
  "choir.core.cancel": {
    effect: "none",
    lanes: "edge",
    capabilities: ["agent:spawn"],
    ...NOTHING,
    sentence: "Cancel a job."
  },
  "choir.core.list": {
    effect: "none",
    lanes: "edge",
    capabilities: [],
    ...NOTHING,
    sentence: "List the running jobs."
  },
  "choir.core.report": {
    effect: "none",
    lanes: "core",
    capabilities: [],
    ...NOTHING,
    sentence: "Report a job's progress, or ask a question."
  },
  // Memory keeps what pages and mails said, too.
  "choir.memory.query": {
    effect: "none",
    lanes: "both",
    capabilities: [],
    ...DATA,
    untrusted: true,
    sentence: "Search this session, earlier ones and facts."
  },
  "choir.memory.upsert": {
    effect: "external",
    lanes: "both",
    capabilities: [],
    ...NOTHING,
    sentence: "Keep a fact in long-term memory."
  },
  "choir.memory.delete": {
    effect: "external",
    lanes: "both",
    capabilities: [],
    ...NOTHING,
    sentence: "Delete a fact from long-term memory."
  },
  // They reach the user alone, in the chat that asked.
  "choir.plan.set": {
    effect: "external",
    lanes: "edge",
    capabilities: [],
    ...NOTHING,
    sentence: "Set a reminder."
  },
  "choir.plan.list": {
    effect: "none",
    lanes: "edge",
    capabilities: [],
    ...DATA,
    untrusted: true,
    sentence: "List the reminders."
  },
  "choir.plan.cancel": {
    effect: "external",
    lanes: "edge",
    capabilities: [],
    ...NOTHING,
    sentence: "Remove a reminder."
  },
  "choir.memory.compact": {
    effect: "none",
    lanes: "both",
    capabilities: [],
    ...NOTHING,
    sentence: "Shorten the working memory."
  },
  "choir.memory.delta": {
    effect: "none",
    lanes: "both",
    capabilities: [],
    ...DATA,
    untrusted: true,
    sentence: "Write the summary's next part, while the working memory is shortened."
  },
  "choir.propose.tool": {
    effect: "none",
    lanes: "both",
    capabilities: ["human"],
    ...NOTHING,
    sentence: "Propose a new or changed tool; a person decides."
  },
  "choir.propose.skill": {
    effect: "none",
    lanes: "both",
    capabilities: ["human"],
    ...NOTHING,
    sentence: "Propose a new or changed skill; a person decides."
  },
  "choir.propose.config_change": {
    effect: "none",
    lanes: "both",
    capabilities: ["human"],
    ...NOTHING,
    sentence: "Propose a change to the configuration; a person decides."
  },
  "choir.propose.repo_change": {
    effect: "none",
    lanes: "both",
    capabilities: ["human"],
    ...NOTHING,
    sentence: "Propose to merge a branch of its repository; a person decides."
  },
  "choir.skill.start": { effect: "none", lanes: "both", capabilities: [], ...NOTHING, sentence: "Begin a skill." },
  "choir.skill.transition": {
    effect: "none",
    lanes: "both",
    capabilities: [],
    ...NOTHING,
    sentence: "End a skill's current step and go to the next one."
  },
  "choir.core.writeback": {
    effect: "none",
    lanes: "core",
    capabilities: [],
    ...NOTHING,
    of: "some",
    sentence: "Record what a job did and found, where its profile asks for it."
  },
  "choir.skill.list": {
    effect: "none",
    lanes: "both",
    capabilities: [],
    ...NOTHING,
    of: "some",
    sentence: "Find skills and the input that they take."
  },
  // It attaches files.
  "choir.email.send": {
    effect: "external",
    lanes: "both",
    capabilities: ["fs:read", "net", "env:read"],
    ...DATA,
    acts: true,
    free: ["subject", "text"],
    of: "some",
    sentence: "Send an e-mail."
  },
  "choir.email.receive": {
    effect: "none",
    lanes: "both",
    capabilities: ["fs:write", "net", "env:read"],
    ...MAILBOX,
    of: "some",
    sentence: "List and read e-mails."
  },
  "choir.email.check": {
    effect: "none",
    lanes: "both",
    capabilities: ["net", "env:read"],
    ...MAILBOX,
    of: "some",
    sentence: "Count new and unread e-mails."
  },
  "choir.web.fetch": {
    effect: "none",
    lanes: "both",
    capabilities: ["net"],
    ...WEB,
    of: "some",
    sentence: "Fetch a web page as text."
  },
  "choir.web.browse": {
    effect: "external",
    lanes: "both",
    capabilities: ["net"],
    ...WEB,
    of: "some",
    sentence: "Open pages in a browser, click and type."
  },
  "choir.web.search": {
    effect: "none",
    lanes: "both",
    capabilities: ["net", "env:read"],
    ...WEB,
    of: "some",
    sentence: "Search the web."
  },
  // Others write in shared pages, and read what it appends to them.
  "choir.notion.query": {
    effect: "external",
    lanes: "both",
    capabilities: ["net", "env:read"],
    ...DATA,
    untrusted: true,
    acts: true,
    ownPlace: true,
    of: "some",
    sentence: "Search, read, create and append to Notion pages."
  },
  // Its text goes where the operator lets the agent speak, as its prompts go to a model, and the sound to the user.
  "choir.tts.speak": {
    effect: "none",
    lanes: "both",
    capabilities: ["net", "env:read"],
    ...NOTHING,
    locks: ["choirtmp:X"],
    of: "some",
    sentence: "Send the user a voice note."
  }
} as const satisfies Readonly<Record<string, BuiltInTool>>

export type BuiltInToolName = keyof typeof TABLE

export const BUILT_IN_TABLE: Readonly<Record<BuiltInToolName, BuiltInTool>> = TABLE

/** The name of a built-in tool as the name of a tool, which a name without a row is not. */
export const builtIn = <N extends BuiltInToolName>(name: N): N & ToolName => ToolName.make(name) as N & ToolName
