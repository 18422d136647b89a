/** The codecs by their APIs, and the reading of a body, which is one JSON text or a stream of events. */
import { Result } from "effect"
import { Sse } from "effect/encoding"
import type { ModelApi } from "#schema/Continuation.ts"
import type { ModelError } from "#schema/Event.ts"
import { isDeeperThan } from "#src/shared/text/canonicalJson.ts"
import { type Answer, errorIn, excerpt, problem } from "./Answer.ts"
import { chatCodec } from "./chatCodec.ts"
import type { Codec, Delta } from "./Codec.ts"
import { messagesCodec } from "./messagesCodec.ts"
import { pageIn, saidIn } from "./providerWords.ts"
import { responsesCodec } from "./responsesCodec.ts"

export const CODECS: Readonly<Record<ModelApi, Codec>> = {
  chat: chatCodec,
  responses: responsesCodec,
  messages: messagesCodec
}

/** A model's answer in bytes (threat model, LLM endpoint); of a stream, the characters that are kept of it. */
export const MODEL_REPLY_BYTES_MAX = 8 * 1024 * 1024
/** How deep an answer, or an event of a stream, may nest: whatever walks through one does so by recursion. */
const MODEL_REPLY_DEPTH_MAX = 500

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** The JSON in a text of a provider; `undefined` for any other text. */
const parseBounded = (text: string): Result.Result<unknown, ModelError> => {
  const value = parse(text)
  return isDeeperThan(value, MODEL_REPLY_DEPTH_MAX)
    ? Result.fail(problem("malformed", `the answer nests deeper than ${MODEL_REPLY_DEPTH_MAX} levels`))
    : Result.succeed(value)
}

type Redact = (text: string) => string

/** Reads a text; what an error quotes of it is read again without secrets, since a quotation may end within one. */
const quoting = <A>(
  text: string,
  redact: Redact,
  read: (text: string) => Result.Result<A, ModelError>
): Result.Result<A, ModelError> => {
  const result = read(text)
  if (Result.isSuccess(result)) return result
  const again = read(redact(text))
  return Result.isFailure(again) ? again : Result.fail(problem(result.failure.kind, "the answer cannot be read"))
}

/** A stream of events whose header calls it something else. */
const EVENTS = /^\uFEFF?\s*(?:data|event|id|retry)?:/u

/** The reading of a body that is not a JSON text: empty, a page, a stream of another name, or words. */
const readOther = (codec: Codec, text: string, redact: Redact): Result.Result<Answer, ModelError> => {
  if (EVENTS.test(text)) {
    const reading = readStream(codec, redact)
    return Result.flatMap(reading.feed(`${text}\n\n`), () => reading.answer())
  }
  if (text.trim() === "") return Result.fail(problem("malformed", "the answer is empty"))
  const page = pageIn(text)
  return Result.fail(
    problem(
      "malformed",
      page === undefined
        ? `the answer is not JSON: ${excerpt(text)}`
        : `the answer is ${page}, and not a model's (is the model's endpoint right?)`
    )
  )
}

/** An answer in one piece; `redact` takes secrets out of what an error quotes of it. */
export const readWhole = (codec: Codec, text: string, redact: Redact): Result.Result<Answer, ModelError> =>
  quoting(text, redact, (text) =>
    Result.flatMap(parseBounded(text), (body) =>
      body === undefined ? readOther(codec, text, redact) : codec.read(body)
    )
  )

/** The end mark of streams of chat completions; the other APIs end with an event. */
const DONE = "[DONE]"

/** A stream that is being read. */
export interface Reading {
  /** Takes some text of the stream, cut anywhere. Comments, which keep a connection alive, say nothing. */
  feed(text: string): Result.Result<ReadonlyArray<Delta>, ModelError>
  /** Whether the end mark came. */
  isDone(): boolean
  chars(): number
  /** The answer, once the stream has ended. */
  answer(): Result.Result<Answer, ModelError>
}

const tooLarge = problem("too_large", `the answer is larger than ${MODEL_REPLY_BYTES_MAX} bytes`)

/** Characters of a body without events that are kept, in case it is an answer, or an error, in one piece. */
const PLAIN_CHARS_MAX = 256 * 1024

/** The data of an event that is an error by its name, whatever is in it. */
const namedError = (text: string): ModelError => {
  const data = parse(text)
  return (
    errorIn(data) ??
    errorIn({ error: data }) ??
    problem("http", `the provider answered 502: ${saidIn(text)}`, { status: 502 })
  )
}

export const readStream = (codec: Codec, redact: Redact): Reading => {
  const assembler = codec.assembler()
  let arrived: Array<Sse.Event> = []
  let hasEvents = false
  let plain = ""
  let isDone = false
  const parser = Sse.makeParser(
    (event) => {
      if (event._tag === "Event") arrived.push(event)
    },
    { maxEventSize: MODEL_REPLY_BYTES_MAX }
  )
  const take = ({ data: text, event }: Sse.Event): Result.Result<ReadonlyArray<Delta>, ModelError> => {
    if (text.trim() === DONE) {
      isDone = true
      return Result.succeed([])
    }
    if (event === "error") return quoting(text, redact, (text) => Result.fail(namedError(text)))
    let reader = assembler
    return quoting(text, redact, (text) => {
      const taken = Result.flatMap(parseBounded(text), (data) =>
        data === undefined
          ? Result.fail(problem("malformed", `a part of the answer is not JSON: ${saidIn(text)}`))
          : reader.take(data)
      )
      // The second reading must add nothing.
      reader = codec.assembler()
      return taken
    })
  }
  return {
    feed: (text) => {
      arrived = []
      if (!hasEvents) plain = (plain + text).slice(0, PLAIN_CHARS_MAX)
      if (parser.feed(text) !== undefined) return Result.fail(tooLarge)
      if (arrived.length > 0) {
        hasEvents = true
        plain = ""
      }
      const deltas: Array<Delta> = []
      for (const event of arrived) {
        if (isDone) break
        const taken = take(event)
        if (Result.isFailure(taken)) return taken
        for (const delta of taken.success) deltas.push(delta)
      }
      return assembler.chars() > MODEL_REPLY_BYTES_MAX ? Result.fail(tooLarge) : Result.succeed(deltas)
    },
    isDone: () => isDone,
    chars: assembler.chars,
    answer: () => {
      const whole = assembler.whole(isDone)
      if (whole !== undefined) return quoting(JSON.stringify(whole), redact, (text) => codec.read(parse(text)))
      // A body that only its header calls a stream.
      if (!hasEvents && plain.trim() !== "" && !EVENTS.test(plain)) return readWhole(codec, plain, redact)
      return Result.fail(problem("unreachable", "the answer broke off: the stream ended before the answer did"))
    }
  }
}
