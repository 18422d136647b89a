/** What a provider can tell of the prompts that it is sent: P5, thoughts go back to nobody else, and P6, a lane compacts when its tokens ask for it. */
import { isObject, type Keys, listOf } from "#demo/dialects/jsonKeys.ts"
import { type Asked, isCompaction } from "./asked.ts"
import { Violation } from "./Kernel.ts"
import { thinkerOf } from "./ModelStreams.ts"
import { CONTEXT_TOKENS } from "./Setup.ts"
import type { World } from "./World.ts"

/** The share of its limit below which no window is compacted by itself; the agent begins at 0.92 of what it counts. */
const COMPACTED_MIN = 0.5
/** Characters of a window from which its bytes and not its tokens may be what is full. */
const FULL_CHARS_MIN = 8000

const tokensOf = (chars: number): number => chars / 4

export class PromptRules {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  asked(asked: Asked, body: Keys): void {
    this.#thoughts(asked, body)
    this.#compaction(asked, body)
  }

  #thoughts({ model }: Asked, body: Keys): void {
    for (const message of listOf(body["messages"])) {
      const thinker = isObject(message) ? thinkerOf(message["reasoning_content"]) : undefined
      if (thinker !== undefined && thinker !== model)
        throw new Violation("P5", `the thoughts of ${thinker} are sent to ${model}`)
    }
  }

  /** Nobody orders the compaction of a job, so that it is due by its size alone. */
  #compaction(asked: Asked, body: Keys): void {
    const { faults, setup } = this.#world
    const isLiar = faults.kinds.has("hostile-model") || faults.kinds.has("answers") || setup.large
    if (isLiar || !asked.tools.includes("choir-core-report") || !isCompaction(asked)) return
    const { compact_at, window_tokens_max } = setup.config(1).memory
    const [system] = asked.messages
    const chars = JSON.stringify(body["messages"] ?? body["input"]).length
    const fixed = tokensOf((system?.content ?? "").length + JSON.stringify(body["tools"]).length)
    const limit = Math.min(compact_at * (CONTEXT_TOKENS - asked.max_tokens - fixed), window_tokens_max ?? Infinity)
    if (tokensOf(chars) < COMPACTED_MIN * limit && chars < FULL_CHARS_MIN)
      throw new Violation("P6", `a job is compacted at ${tokensOf(chars)} tokens, of ${limit}`)
  }
}
