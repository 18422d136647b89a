/** The models' provider: answers by the seed, late, wrongly, or not at all. It never dies, since it is not Choir's. */
import { DIALECTS, refusalOf } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import type { Traits } from "#demo/dialects/Rule.ts"
import { type Asked, askedOf } from "./asked.ts"
import type { Attempts } from "./Attempts.ts"
import { dialectAt } from "./models.ts"
import { ModelStreams } from "./ModelStreams.ts"
import type { Exchange, Request, Server } from "./Network.ts"
import { PromptRules } from "./PromptRules.ts"
import { Script } from "./Script.ts"
import { CANARY, CONTEXT_TOKENS } from "./Setup.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** How often a judge cannot be asked. */
const JUDGE_AWAY = 0.4
/** What a model call takes, in ms. */
const THINKING_MS = 900

/** Its tokens have four characters each, as the agent estimates them; a tokenizer takes longer to load than a seed takes. */
const TRAITS: Traits = {
  context_window: CONTEXT_TOKENS,
  refuses: [],
  extensions: [],
  count: (text) => Math.ceil(text.length / 4)
}

const completion = (message: object, finish_reason: string, usage: object) =>
  JSON.stringify({ choices: [{ message, finish_reason }], usage })

export class Provider implements Server {
  readonly #world: World
  readonly #draw: Seed
  readonly #script: Script
  readonly #streams: ModelStreams
  readonly #attempts: Attempts
  readonly #prompts: PromptRules

  constructor(world: World) {
    this.#world = world
    this.#draw = world.draw("provider")
    this.#script = new Script(world.faults, world.draw("model"), world.setup)
    this.#streams = new ModelStreams(world, this.#script, TRAITS)
    this.#prompts = new PromptRules(world)
    this.#attempts = world.invariants.attempts
  }

  listener() {
    return this.#world.kernel.world
  }

  sent(request: Request): void {
    this.#attempts.sent(request)
  }

  handle(request: Request, exchange: Exchange): void {
    const { faults, invariants, kernel } = this.#world
    const body = JSON.parse(request.body) as Keys
    const streaming = dialectAt(request.path)
    const dialect = streaming ?? DIALECTS.openai
    const refusal = refusalOf(dialect, { headers: request.headers, bytes: request.body.length, body }, TRAITS)
    // One message can be longer than a whole context where they are large: then the agent has to cope with the refusal.
    if (refusal?.rule === "prompt and answer fit into the model's context" && this.#world.setup.large)
      return exchange.reply(refusal.status, JSON.stringify(refusal.body))
    if (refusal !== undefined) invariants.refused(`${dialect.name}: ${refusal.message}`)
    const asked = askedOf(dialect, body)
    invariants.asked(asked, request.body)
    this.#attempts.arrived(request, asked)
    this.#prompts.asked(asked, body)
    // A judge is asked seldom, so that one that cannot be asked would hardly ever be met.
    if (asked.tools.includes("choir-skill-verdict") && !faults.calm && this.#draw.chance(JUDGE_AWAY))
      return exchange.reply(401, "no such key")
    if (faults.active("provider") && this.#draw.chance(faults.rates.provider)) return this.#fail(request, exchange)
    const answer =
      streaming === undefined
        ? () => this.#answer(asked, JSON.stringify(body["messages"]).length / 5, exchange)
        : () => this.#streams.answer({ request, dialect, body, asked, tokens: TRAITS.count(request.body), exchange })
    const thinking = faults.calm ? this.#draw.between(20, 100) : this.#draw.wait(THINKING_MS)
    kernel.after(kernel.world, thinking, answer)
  }

  #reset(request: Request, exchange: Exchange): void {
    if (exchange.isAwaited()) this.#attempts.broke(request)
    exchange.reset()
  }

  #answer(asked: Asked, tokens: number, exchange: Exchange): void {
    const { calls, text } = this.#script.next(asked)
    const tool_calls = calls.map(({ args, name }) => ({
      id: "provider-own",
      type: "function",
      function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) }
    }))
    const message = { role: "assistant", content: text ?? null, ...(calls.length === 0 ? {} : { tool_calls }) }
    exchange.reply(
      200,
      completion(message, calls.length === 0 ? "stop" : "tool_calls", this.#script.usage(asked, tokens))
    )
  }

  #fail(request: Request, exchange: Exchange): void {
    const { faults, kernel } = this.#world
    const draw = this.#draw
    const soon = (run: () => void) => kernel.after(kernel.world, draw.wait(300), run)
    const kind = draw.pick(["429", "429", "500", "503", "401", "reset", "hang", "nonsense", "empty", "drip"])
    switch (kind) {
      case "429": {
        const wait = draw.pick(["1", "3", "8", "soon", new Date(kernel.now + 4000).toUTCString()])
        const date = new Date(kernel.now).toUTCString()
        soon(() => exchange.reply(429, "slow down", draw.chance(0.7) ? { "retry-after": wait, date } : {}))
        return
      }
      case "500":
      case "503":
        soon(() => exchange.reply(Number(kind), "broken"))
        return
      case "401":
        // Some providers quote the key that they refuse.
        soon(() => exchange.reply(401, `no such key: ${request.headers["authorization"] ?? ""}`))
        return
      case "reset":
        soon(() => this.#reset(request, exchange))
        return
      case "hang":
        faults.onCalm(() => exchange.reset())
        return
      case "nonsense":
        soon(() => exchange.reply(200, draw.pick(["{", "<html>", '{"choices":[]}', "null"])))
        return
      case "empty":
        soon(() => exchange.reply(200, completion({ content: "" }, "stop", {})))
        return
      case "drip": {
        const pieces = exchange.stream()
        const text = completion({ content: `drip ${CANARY.length}` }, "stop", {})
        let at = 0
        const drip = () => {
          if (!pieces.isOpen()) return
          pieces.write(text.slice(at, at + 40))
          at += 40
          if (at >= text.length) pieces.end()
          else kernel.after(kernel.world, draw.wait(400), drip)
        }
        drip()
        return
      }
    }
  }
}
