/** The tools of Choir itself, by name and by what they can do, so that a skill is checked before there is an agent to ask. */
import type { Capability } from "#schema/Capability.ts"

/** Tools by their names, each with its capabilities. */
export type ToolCapabilities = ReadonlyMap<string, ReadonlyArray<Capability>>

export const EXEC_TOOL = "choir.exec"

/** A command can do whatever its programs can. Long-term memory and a job's own report are Choir's and need nothing. */
const TABLE: Readonly<Record<string, ReadonlyArray<Capability>>> = {
  [EXEC_TOOL]: ["fs:read", "fs:write", "net", "exec"],
  "choir.fs.read": ["fs:read"],
  "choir.fs.write": ["fs:write"],
  "choir.fs.edit": ["fs:read", "fs:write"],
  "choir.fs.search": ["fs:read"],
  "choir.fs.find": ["fs:read"],
  "choir.fs.send": ["fs:read"],
  "choir.core.spawn": ["agent:spawn"],
  "choir.core.inject": ["agent:spawn"],
  "choir.core.cancel": ["agent:spawn"],
  "choir.core.list": [],
  "choir.core.report": [],
  "choir.memory.query": [],
  "choir.memory.upsert": [],
  "choir.memory.delete": [],
  "choir.memory.compact": [],
  "choir.memory.delta": [],
  "choir.propose.tool": ["human"],
  "choir.propose.skill": ["human"],
  "choir.propose.config_change": ["human"],
  "choir.propose.repo_change": ["human"],
  "choir.skill.start": [],
  "choir.skill.transition": []
}

/** Tools that only agents have which are bound to a resource, or whose image has job profiles or many skills. */
const OF_SOME: Readonly<Record<string, ReadonlyArray<Capability>>> = {
  "choir.core.writeback": [],
  "choir.skill.list": [],
  "choir.email.send": ["fs:read", "net", "env:read"],
  "choir.email.receive": ["fs:write", "net", "env:read"],
  "choir.email.check": ["net", "env:read"],
  "choir.web.fetch": ["net"],
  "choir.web.browse": ["net"],
  "choir.web.search": ["net", "env:read"],
  "choir.notion.query": ["net", "env:read"],
  "choir.tts.speak": ["net", "env:read"]
}

export const BUILT_IN_CAPABILITIES: ToolCapabilities = new Map(Object.entries({ ...TABLE, ...OF_SOME }))

/** The tools that every agent has. */
export const TOOLS_OF_ALL: ReadonlyArray<string> = Object.keys(TABLE)

/** The arguments of Choir's own tools that are free text: a grant covers any text there. A tool that is not named has none. */
export const BUILT_IN_FREE: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["choir.email.send", ["subject", "text"]]
])

export const BUILT_IN_TOOLS: ReadonlyArray<string> = [...TOOLS_OF_ALL, ...Object.keys(OF_SOME)]
