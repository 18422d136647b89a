/** A model that does what the step of its skill says, as far as the step lets it: no more wit than a script, and no script per skill. */
import { Effect } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { calls, type Script, says } from "../../support/testing/ScriptedModel.ts"

/** The newest note about the present step. */
const stepOf = (messages: ReadonlyArray<Message>): string => {
  const texts = messages.flatMap(({ content }) => (typeof content === "string" ? [content] : []))
  return texts.toReversed().find((text) => text.includes("You are in the step ")) ?? ""
}

/**
 * Reads each file that the objective names in `[brackets]`, writes those in `<angles>`, sends a letter to each name after `@`, and then leaves by the
 * first transition with the words of `{braces}` as keys of its output, or of its writes to STATE.
 */
export const obedient: Script = (messages) =>
  Effect.sync(() => {
    const note = stepOf(messages)
    const since = messages.slice(messages.findLastIndex(({ content }) => content === note))
    const done = JSON.stringify(since)
    const todo: Array<readonly [string, never]> = []
    const add = (tool: string, input: object, mark: string) => {
      if (!done.includes(mark)) todo.push([tool, input as never])
    }
    for (const [, path] of note.matchAll(/\[([\w.]+)\]/gu)) add("choir.fs.read", { path }, `\\"${path}\\"`)
    for (const [, path] of note.matchAll(/<([\w.]+\.md)>/gu))
      add("choir.fs.write", { path, content: "text", mode: "overwrite" }, `\\"${path}\\"`)
    for (const [, to] of note.matchAll(/@(\w+)/gu)) add("letters.send", { to }, `\\"${to}\\"`)
    if (todo.length > 0) return calls(...todo)
    const on = /, on: ([a-z_-]+)/u.exec(note)?.[1]
    if (on === undefined) return says("there is nothing to do")
    const output = Object.fromEntries(Array.from(note.matchAll(/\{(\w+)\}/gu), ([, key]) => [key, true]))
    return calls([
      "choir.skill.transition",
      note.includes("Put results into writes") ? { on, writes: output } : { on, output }
    ])
  })
