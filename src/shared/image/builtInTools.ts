/** The tools that every agent has, by name, so that a skill is checked before there is an agent to ask. */
export const BUILT_IN_TOOLS: ReadonlyArray<string> = [
  "choir.exec",
  "choir.fs.read",
  "choir.fs.write",
  "choir.fs.edit",
  "choir.fs.search",
  "choir.fs.find",
  "choir.core.spawn",
  "choir.core.inject",
  "choir.core.cancel",
  "choir.core.list",
  "choir.core.report",
  "choir.memory.query",
  "choir.memory.compact",
  "choir.propose.tool",
  "choir.propose.skill",
  "choir.propose.config_change",
  "choir.propose.repo_change",
  "choir.skill.start",
  "choir.skill.transition"
]
