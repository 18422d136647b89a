/** The ways in which a model's answer goes wrong: in what it says, in its stream, and before it begins. */
import type { Answer, ScriptedCall } from "../support/providers/Answer.ts"
import type { Said } from "./Script.ts"
import type { Seed } from "./Seed.ts"

/** In what is said: a cut at the limit, nothing, a refusal, arguments that do not parse. */
export const CONTENT_FAULTS = [
  "cut-text",
  "cut-call",
  "cut-thinking",
  "empty",
  "blank",
  "refusal",
  "filter",
  "malformed"
] as const
/** In the stream: it breaks off, falls silent, ends with an error, or ends too early. */
const STREAM_FAULTS = ["broken", "silent", "error", "ended"] as const
/** In place of an answer: the connection breaks before its first byte, a status, a prompt that is too long. */
const NO_ANSWERS = ["no-byte", "limited", "overloaded", "bad-gateway", "overflow"] as const

export type ContentFault = (typeof CONTENT_FAULTS)[number]
export type StreamFault = (typeof STREAM_FAULTS)[number]
export type NoAnswer = (typeof NO_ANSWERS)[number]
export type AnswerFault = ContentFault | StreamFault | NoAnswer

const isIn =
  <A extends string>(kinds: ReadonlyArray<A>) =>
  (fault: string | undefined): fault is A =>
    kinds.some((kind) => kind === fault)
export const isContentFault = isIn(CONTENT_FAULTS)
export const isStreamFault = isIn(STREAM_FAULTS)
export const isNoAnswer = isIn(NO_ANSWERS)

export const drawFault = (draw: Seed): AnswerFault =>
  draw.pick([...CONTENT_FAULTS, ...CONTENT_FAULTS, ...STREAM_FAULTS, ...NO_ANSWERS] as unknown as readonly [
    AnswerFault
  ])

/** The words of an answer that its limit cut, which no lane may take for a whole one. */
export const HALF = "half of"

/** What a model says as its provider writes it. */
export const answerOf = ({ calls, text }: Said, reasoning: string): Answer => {
  const written = calls.map(({ args, name }): ScriptedCall => ({ name, input: args }))
  return {
    ...(text === undefined ? {} : { text }),
    ...(written.length === 0 ? {} : { calls: written, reasoning })
  }
}

const jsonOf = ({ input }: ScriptedCall): string => (typeof input === "string" ? input : JSON.stringify(input))

/** The last call with other arguments. */
const withLast = (calls: ReadonlyArray<ScriptedCall>, bend: (json: string) => string): ReadonlyArray<ScriptedCall> =>
  calls.map((call, index) => (index < calls.length - 1 ? call : { ...call, input: bend(jsonOf(call)) }))

/** An answer with its fault. `count` tells the words of one from those of another. */
export const bent = (answer: Answer, fault: ContentFault, count: number, draw: Seed): Answer => {
  // A tool without required parameters, so that arguments of which nothing came look like whole ones.
  const { calls = [{ name: "sim-look", input: {} }], reasoning = `thoughts ${count}` } = answer
  switch (fault) {
    case "cut-text":
      return { text: `${HALF} ${count}`, finish: "length" }
    case "cut-call": {
      const cut = withLast(calls, (json) => json.slice(0, draw.chance(0.5) ? 0 : draw.below(json.length)))
      return { text: `${HALF} ${count}`, calls: cut, reasoning, finish: "length" }
    }
    case "cut-thinking":
      return { reasoning, finish: "length" }
    case "empty":
      return {}
    case "blank":
      return { text: " \n" }
    case "refusal":
      return { refusal: "I cannot help with that." }
    case "filter":
      return { text: "as far as", finish: "filter" }
    case "malformed":
      return { calls: withLast(calls, (json) => `${json.slice(0, -1)},`), reasoning }
  }
}
