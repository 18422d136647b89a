/**
 * A model that knows its prompt and nothing else. It answers what it is asked by the newest that the prompt says, or else by one query of its
 * memory, and in a compaction it does what the words of the compaction ask, as well as it can.
 */
import { isObject, type Keys } from "#demo/dialects/jsonKeys.ts"
import type { Message } from "#src/shared/model/Conversation.ts"

/** What it is good at. */
export interface Memory {
  /** Whether it writes down a fact that it sees; it keeps all of them where absent. */
  readonly keeps?: (fact: string) => boolean
  /** Whether it pins goal and constraints, as it is asked to. */
  readonly pins: boolean
  /** Whether it also writes down what does not matter, far beyond what a summary has room for. */
  readonly isVerbose?: boolean
}

/** One thing that its prompt says, and whether a tool says it. */
interface Line {
  readonly text: string
  readonly isResult: boolean
}

/** A call of a tool by its canonical name, or words. */
export type Decision = { readonly call: readonly [name: string, input: Keys] } | { readonly text: string }

const TOLD = /\b(Fact \d+|Goal|Constraint): ([^.\n(]+)/gu
const QUESTION = /What is the (Fact \d+|Goal|Constraint)\?/gu
const COMPACTION = "<choir-note>\nCompaction: your context is nearly full"
const PINS = "Set pinned for the goal, constraints"

/** A prompt as the agent's own client has it. */
export const linesOf = (messages: ReadonlyArray<Message>): ReadonlyArray<Line> =>
  messages.map(({ content, role }) => ({ text: content ?? "", isResult: role === "tool" }))

const stringsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(stringsOf)
  return isObject(value) ? Object.values(value).flatMap(stringsOf) : []
}

/** A prompt as any of the APIs has it; calls are left out. */
export const linesOfBody = (body: unknown): ReadonlyArray<Line> => {
  const { input, messages } = Object(body) as Keys
  return ((messages ?? input) as ReadonlyArray<Keys>).flatMap((message): ReadonlyArray<Line> => {
    if (message["type"] === "function_call_output")
      return [{ text: stringsOf(message["output"]).join("\n"), isResult: true }]
    const { content, role } = message
    const parts = Array.isArray(content) ? (content as ReadonlyArray<Keys>) : [{ text: content }]
    return parts.flatMap((part) => {
      const isResult = role === "tool" || part["type"] === "tool_result"
      return part["type"] === "tool_use"
        ? []
        : [{ text: stringsOf(isResult ? (part["content"] ?? part["text"]) : part["text"]).join("\n"), isResult }]
    })
  })
}

/** The newest value of each fact in a text, whose newest part is at its end. */
export const toldIn = (text: string): ReadonlyMap<string, string> =>
  new Map([...text.matchAll(TOLD)].map(([, key = "", value = ""]) => [key, value.trim()]))

const saidIn = (lines: ReadonlyArray<Line>): string =>
  lines.flatMap(({ isResult, text }) => (isResult ? [] : [text])).join("\n")

export const isCompacting = (lines: ReadonlyArray<Line>): boolean => lines.some(({ text }) => text.includes(COMPACTION))

const deltaOf = (said: string, { isVerbose = false, keeps = () => true, pins }: Memory): Keys => {
  const told = [...toldIn(said)].map(([key, value]) => ({ key, value }))
  const facts = told.filter(({ key }) => key.startsWith("Fact") && keeps(key))
  // Pinned once; what is pinned says so in the summary from then on.
  const pinned = told.filter(({ key, value }) => !key.startsWith("Fact") && !said.includes(`${value} (pinned)`))
  const days = isVerbose ? [...said.matchAll(/weather of day (\d+)/gu)] : []
  return {
    summary_update: "Open: the wedding.",
    add_facts: [
      ...(pins && said.includes(PINS) ? pinned.map((fact) => ({ ...fact, pinned: true })) : []),
      ...days.map(([, day = ""]) => ({ key: `Day ${day}`, value: "nothing of any weight" })),
      ...facts
    ]
  }
}

/** What it does about a prompt. */
export const decide = (lines: ReadonlyArray<Line>, memory: Memory): Decision => {
  const said = saidIn(lines)
  if (isCompacting(lines)) return { call: ["choir.memory.delta", deltaOf(said, memory)] }
  const question = lines.findLastIndex(({ isResult, text }) => !isResult && text.search(QUESTION) >= 0)
  const key = [...(lines[question]?.text ?? "").matchAll(QUESTION)].at(-1)?.[1]
  if (key === undefined) {
    const last = lines.findLast(({ isResult }) => !isResult)?.text ?? ""
    const isPlan = lines.at(-1)?.isResult === false && /day \d*00,/u.test(last)
    return isPlan ? { call: ["ws.write", { text: last }] } : { text: "noted" }
  }
  const found = lines.slice(question).filter(({ isResult }) => isResult)
  // The newest hit is the first one.
  const hit = [
    ...found
      .map(({ text }) => text)
      .join("\n")
      .matchAll(TOLD)
  ].find(([, each]) => each === key)?.[2]
  const value = hit?.trim() ?? toldIn(said).get(key)
  if (value !== undefined) return { text: `The ${key} is ${value}.` }
  return found.length > 0 ? { text: "I do not know." } : { call: ["choir.memory.query", { query: `${key}:` }] }
}
