/** Planted bugs of what models are asked (W4). */
import type { Mutant } from "./Mutant.ts"

const WINDOW = "src/agent/model/prompt/promptWindow.ts"
const MESSAGES = "src/agent/model/prompt/promptMessages.ts"

export const REQUEST_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "broken-arguments-are-replayed",
    file: MESSAGES,
    find: `JSON.stringify(input) : "{}"`,
    replace: "JSON.stringify(input) : JSON.stringify(input)",
    knownSeed: 3,
    breaks: ["W4"]
  },
  {
    name: "results-apart-from-their-calls",
    file: WINDOW,
    find: "else if (result === undefined) held.push(event)",
    replace: "else if (result === undefined) ordered.push(...block.events.splice(0), event)",
    knownSeed: 2,
    breaks: ["W4"]
  },
  {
    name: "parked-calls-stay-in-sight",
    file: WINDOW,
    find: "      ordered.push(...held.splice(0))\n    }\n    const result",
    replace: "      ordered.push(...aside.events, ...held.splice(0))\n    }\n    const result",
    knownSeed: 7,
    breaks: ["W4"]
  }
]
