/** The tools of Choir itself, as a list for people shows them: their greatest effect, the lanes that have them, and a sentence. */
import type { ToolEffect } from "#schema/Tool.ts"

export interface ToolRow {
  readonly effect: ToolEffect
  readonly lanes: "both" | "edge" | "core"
  readonly description: string
}

const row = (effect: ToolEffect, lanes: ToolRow["lanes"], description: string): ToolRow => ({
  effect,
  lanes,
  description
})

/** A row for each built-in tool, by its name. */
export const BUILT_IN_TOOL_ROWS: ReadonlyMap<string, ToolRow> = new Map(
  Object.entries({
    "choir.exec": row("workspace", "both", "Run a shell command in the workspace."),
    "choir.fs.read": row("none", "both", "Read a file or list a folder."),
    "choir.fs.write": row("workspace", "both", "Create, overwrite or append to a text file."),
    "choir.fs.edit": row("workspace", "both", "Replace text in a file."),
    "choir.fs.search": row("none", "both", "Search the text of files."),
    "choir.fs.find": row("none", "both", "Find files by name."),
    "choir.fs.send": row("none", "both", "Send files to the user."),
    "choir.core.spawn": row("none", "edge", "Start a job in the background."),
    "choir.core.inject": row("none", "edge", "Send an instruction to a job."),
    "choir.core.cancel": row("none", "edge", "Cancel a job."),
    "choir.core.list": row("none", "edge", "List the running jobs."),
    "choir.core.report": row("none", "core", "Report a job's progress, or ask a question."),
    "choir.core.writeback": row("none", "core", "Record what a job did and found, where its profile asks for it."),
    "choir.memory.query": row("none", "both", "Search this session, earlier ones and facts."),
    "choir.memory.upsert": row("external", "both", "Keep a fact in long-term memory."),
    "choir.memory.delete": row("external", "both", "Delete a fact from long-term memory."),
    "choir.memory.compact": row("none", "both", "Shorten the working memory."),
    "choir.memory.delta": row("none", "both", "Write the summary's next part, while the working memory is shortened."),
    "choir.propose.tool": row("none", "both", "Propose a new or changed tool; a person decides."),
    "choir.propose.skill": row("none", "both", "Propose a new or changed skill; a person decides."),
    "choir.propose.config_change": row("none", "both", "Propose a change to the configuration; a person decides."),
    "choir.propose.repo_change": row("none", "both", "Propose to merge a branch of its repository; a person decides."),
    "choir.skill.start": row("none", "both", "Begin a skill."),
    "choir.skill.transition": row("none", "both", "End a skill's current step and go to the next one."),
    "choir.skill.list": row("none", "both", "Find skills and the input that they take."),
    "choir.email.send": row("external", "both", "Send an e-mail."),
    "choir.email.receive": row("none", "both", "List and read e-mails."),
    "choir.email.check": row("none", "both", "Count new and unread e-mails."),
    "choir.web.fetch": row("none", "both", "Fetch a web page as text."),
    "choir.web.browse": row("external", "both", "Open pages in a browser, click and type."),
    "choir.web.search": row("none", "both", "Search the web."),
    "choir.notion.query": row("external", "both", "Search, read, create and append to Notion pages."),
    "choir.tts.speak": row("none", "both", "Send the user a voice note.")
  })
)
