/** The answers of servers that stream, each in its dialect, and with the faults that the seed wants. */
import { type Dialect, refusalOf } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import type { Traits } from "#demo/dialects/Rule.ts"
import type { Answer, Occasion } from "../support/providers/Answer.ts"
import { keepAlive, sse, streamError, writerOf } from "../support/providers/serverEvents.ts"
import {
  type AnswerFault,
  answerOf,
  bent,
  drawFault,
  isContentFault,
  isNoAnswer,
  isStreamFault,
  type NoAnswer,
  type StreamFault
} from "./AnswerFaults.ts"
import type { Asked } from "./asked.ts"
import type { Exchange, Request } from "./Network.ts"
import type { Script } from "./Script.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** One request to a server that streams. */
export interface Streaming {
  readonly request: Request
  readonly dialect: Dialect
  readonly body: Keys
  readonly asked: Asked
  /** Tokens of the prompt. */
  readonly tokens: number
  readonly exchange: Exchange
}

/** The time between two pieces of a stream, in ms. */
const PIECE_MS = 120
/** Pieces of a stream; each is a message of the network. */
const PIECES_MAX = 4
/** Longer answers come in one piece. */
const STREAMED_CHARS_MAX = 16_000

/** What a double thinks: with the model's name, so that nobody else's thoughts are taken for its own. */
const thoughtOf = (model: string, count: number): string => `thought of ${model} ${count}`
const THOUGHT = /thought of (\S+) \d+/u

/** The model whose thoughts a part of a request holds. */
export const thinkerOf = (text: unknown): string | undefined =>
  typeof text === "string" ? THOUGHT.exec(text)?.[1] : undefined

const number = (value: unknown): number => (typeof value === "number" ? value : 0)

export class ModelStreams {
  readonly #world: World
  readonly #draw: Seed
  readonly #script: Script
  readonly #traits: Traits
  #count = 0

  constructor(world: World, script: Script, traits: Traits) {
    this.#world = world
    this.#draw = world.draw("streams")
    this.#script = script
    this.#traits = traits
  }

  answer(streaming: Streaming): void {
    const { dialect, exchange } = streaming
    const { faults } = this.#world
    const fault =
      faults.active("answers") && this.#draw.chance(faults.rates.answers) ? drawFault(this.#draw) : undefined
    this.#count++
    if (isNoAnswer(fault)) return this.#refuse(streaming, fault)
    const { events: eventsOf, whole } = this.#written(streaming, fault)
    const text = JSON.stringify(whole)
    // A stream of so many words would be a step for each of them.
    if (text.length > STREAMED_CHARS_MAX) return exchange.reply(200, text)
    const events = eventsOf().map((event) => sse(event))
    const alive = Array.from({ length: this.#draw.pick([0, 0, 1, 2]) }, () => keepAlive(dialect))
    if (!isStreamFault(fault)) return this.#stream(exchange, [...alive, ...events].join(""), (pieces) => pieces.end())
    // The end of a stream is three events at most; what comes before them is no answer.
    const kept = events.slice(0, this.#draw.between(1, Math.max(1, events.length - 4)))
    this.#breaks(exchange, dialect, [...alive, ...kept].join(""), fault)
  }

  #written(streaming: Streaming, fault: AnswerFault | undefined) {
    const { asked, body, dialect, tokens } = streaming
    const count = this.#count
    const said = answerOf(this.#script.next(asked), thoughtOf(asked.model, count))
    const answer: Answer = isContentFault(fault) ? bent(said, fault, count, this.#draw) : said
    const usage = this.#script.usage(asked, tokens)
    const occasion: Occasion = {
      dialect,
      body,
      model: asked.model,
      number: count,
      created: Math.floor(this.#world.kernel.now / 1000),
      tally: {
        input: number(usage.prompt_tokens),
        output: number(usage.completion_tokens),
        cached: 0,
        written: 0,
        reasoning: 0
      }
    }
    return writerOf[dialect.api](answer, occasion)
  }

  /** Sends a text in pieces that are cut anywhere. */
  #stream(exchange: Exchange, text: string, ended: (pieces: ReturnType<Exchange["stream"]>) => void): void {
    const { kernel } = this.#world
    const pieces = exchange.stream()
    const step = Math.ceil(text.length / this.#draw.between(1, PIECES_MAX))
    const next = (at: number): void => {
      if (!pieces.isOpen()) return
      pieces.write(text.slice(at, at + step))
      if (at + step >= text.length) return ended(pieces)
      kernel.after(kernel.world, this.#draw.wait(PIECE_MS), () => next(at + step))
    }
    next(0)
  }

  #breaks(exchange: Exchange, dialect: Dialect, text: string, fault: StreamFault): void {
    const { faults, kernel } = this.#world
    switch (fault) {
      case "broken":
        // What was written before goes out first.
        return this.#stream(exchange, text, () => kernel.after(kernel.world, 100, () => exchange.reset()))
      case "silent":
        return this.#stream(exchange, text, () => faults.onCalm(() => exchange.reset()))
      case "error":
        return this.#stream(exchange, text + streamError(dialect), (pieces) => pieces.end())
      case "ended":
        return this.#stream(exchange, text, (pieces) => pieces.end())
    }
  }

  #refuse({ body, dialect, exchange, request }: Streaming, fault: NoAnswer): void {
    const { kernel } = this.#world
    const draw = this.#draw
    const wait = draw.pick(["1", "3", new Date(kernel.now + 4000).toUTCString()])
    const date = new Date(kernel.now).toUTCString()
    const headers: Readonly<Record<string, string>> = draw.chance(0.5) ? { "retry-after": wait, date } : {}
    const fail = (status: number, message: string) =>
      exchange.reply(status, JSON.stringify(dialect.errorBody({ status, message })), headers)
    switch (fault) {
      case "no-byte":
        if (exchange.isAwaited()) this.#world.invariants.attempts.broke(request)
        return exchange.reset()
      case "limited":
        return fail(429, "Rate limit reached for requests.")
      case "overloaded":
        return fail(draw.pick([503, 529]), "Overloaded")
      case "bad-gateway":
        return fail(502, "Bad gateway.")
      case "overflow": {
        const asked = { headers: { "anthropic-version": "2023-06-01" }, bytes: 0, body }
        const refusal = refusalOf(dialect, asked, { ...this.#traits, context_window: 1 })
        return exchange.reply(refusal?.status ?? 400, JSON.stringify(refusal?.body))
      }
    }
  }
}
