/** The contents that every server is recorded with, each with its meaning: what a reader has to make of it, whatever the shape. */
import type { Schema } from "effect"

export interface Call {
  readonly name: string
  readonly input: Readonly<Record<string, Schema.Json>>
}

/** What a model says in one answer. */
export interface Meaning {
  readonly name: string
  readonly text?: string
  readonly thoughts?: string
  readonly calls?: ReadonlyArray<Call>
  readonly refusal?: string
  readonly end: "stop" | "calls" | "length" | "filter"
  /** Tokens: of the prompt, of that from the cache, of the answer, of that for thoughts. */
  readonly usage: { readonly input: number; readonly cached: number; readonly output: number; readonly thought: number }
  /** The arguments of the last call end here. */
  readonly cut_call?: number
  /** How the connection fails: an answer in one piece has the error instead. */
  readonly fails?: "cut" | "error"
}

const USAGE = { input: 120, cached: 0, output: 30, thought: 0 }
const read = { name: "choir-fs-read", input: { path: "notes/a.txt" } }
const write = {
  name: "choir-fs-write",
  input: {
    path: "b.txt",
    content: 'A "quoted" line\n\\ and {braces} [too], ünïcödé, 日本 🎈',
    deep: { list: [1, [2, { a: null }]], on: true }
  }
}
const THOUGHTS = "The user wants SECRET things. I look first,\nthen I answer."

export const WORDS = "the model runner has unexpectedly stopped"

export const MEANINGS: ReadonlyArray<Meaning> = [
  { name: "a text", text: "Hello, how are you?", end: "stop", usage: USAGE },
  {
    name: "a text of every kind of character",
    text: 'Größe: 5 €\n\n- 日本語\t"x" \\ {a} [b] <c> & é 👩‍👩‍👧 \u2028 end',
    end: "stop",
    usage: USAGE
  },
  {
    name: "a long text",
    text: "All work and no play makes a dull page. ".repeat(40),
    end: "stop",
    usage: { ...USAGE, output: 400 }
  },
  { name: "a text like an end mark", text: "It sends [DONE] and data: {} at the end.", end: "stop", usage: USAGE },
  { name: "a text of JSON", text: '{"choices":[{"delta":{}}],"error":null}', end: "stop", usage: USAGE },
  { name: "a call", calls: [read], end: "calls", usage: USAGE },
  { name: "a call with deep arguments", calls: [write], end: "calls", usage: USAGE },
  { name: "a call without arguments", calls: [{ name: "choir-core-list", input: {} }], end: "calls", usage: USAGE },
  { name: "parallel calls", calls: [read, write, { ...read, input: { path: "c" } }], end: "calls", usage: USAGE },
  { name: "twice the same call", calls: [read, read], end: "calls", usage: USAGE },
  { name: "a text and a call", text: "I look at it.", calls: [read], end: "calls", usage: USAGE },
  { name: "thoughts and a text", thoughts: THOUGHTS, text: "Four.", end: "stop", usage: { ...USAGE, thought: 20 } },
  {
    name: "thoughts and calls",
    thoughts: THOUGHTS,
    calls: [read, write],
    end: "calls",
    usage: { ...USAGE, thought: 20 }
  },
  { name: "a prompt from the cache", text: "Cached.", end: "stop", usage: { ...USAGE, input: 1200, cached: 1024 } },
  { name: "nothing", text: "", end: "stop", usage: { ...USAGE, output: 1 } },
  { name: "a text that is cut at its limit", text: "The first half, ", end: "length", usage: USAGE },
  { name: "a call that is cut at its limit", calls: [write], cut_call: 40, end: "length", usage: USAGE },
  { name: "a refusal", refusal: "I cannot help with that.", end: "stop", usage: USAGE },
  { name: "a filtered answer", text: "", end: "filter", usage: USAGE },
  { name: "a broken connection", text: "Half of the ans", end: "stop", usage: USAGE, fails: "cut" },
  { name: "a broken connection in a call", calls: [read, write], end: "calls", usage: USAGE, fails: "cut" },
  { name: "an error", text: "Half of the ans", end: "stop", usage: USAGE, fails: "error" }
]

/** Parts of a text as models send them, of a few characters each, cut without regard to anything but characters. */
export const piecesOf = (text: string, chars = 9): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(text.length / chars) }, (_, index) => text.slice(index * chars, (index + 1) * chars))

/** The arguments of a call as the server writes them. */
export const argumentsOf = ({ calls = [], cut_call }: Meaning, index: number): string => {
  const text = JSON.stringify(calls[index]?.input ?? {})
  return cut_call !== undefined && index === calls.length - 1 ? text.slice(0, cut_call) : text
}
