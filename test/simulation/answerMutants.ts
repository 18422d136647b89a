/** Planted bugs of what models are asked and of what they answer (W4, P1 to P6). */
import type { Mutant } from "./Mutant.ts"

export const ANSWER_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "parameters-that-are-no-object",
    file: "src/agent/model/llmView.ts",
    find: `if (Object.hasOwn(schema, "not")) return NO_INPUT`,
    replace: `if (Object.hasOwn(schema, "not")) return schema`,
    knownSeed: 1,
    breaks: ["W4"]
  },
  {
    name: "limit-under-its-older-name",
    file: "src/shared/model/chatCodec.ts",
    find: "[quirks.limit]: answerTokensOf(model)",
    replace: "max_tokens: answerTokensOf(model)",
    knownSeed: 20,
    breaks: ["W4"]
  },
  {
    name: "temperature-for-every-model",
    file: "src/shared/model/requestParameters.ts",
    find: "temperature: quirks.temperature ? model.temperature : undefined",
    replace: "temperature: model.temperature",
    knownSeed: 6,
    breaks: ["W4"]
  },
  {
    name: "reasoning-is-thrown-away",
    file: "src/agent/model/Llm.ts",
    find: "...(continuation === undefined ? {} : { continuation }),",
    replace: "",
    knownSeed: 2,
    breaks: ["P5"]
  },
  {
    name: "reasoning-goes-to-every-model",
    file: "src/shared/model/continuation.ts",
    find: "api === reader.api && model === writerOf(reader) &&",
    replace: "api === reader.api && model !== undefined &&",
    knownSeed: 6,
    breaks: ["W4", "P5"]
  },
  {
    name: "finish-reason-is-not-read",
    file: "src/shared/model/Answer.ts",
    find: "const isCut = CUT.has(why)",
    replace: `const isCut = CUT.has("")`,
    knownSeed: 22,
    breaks: ["P1"]
  },
  {
    name: "cut-call-begins",
    file: "src/shared/model/Answer.ts",
    find: "callOf(call, !isCut || index < calls.length - 1)",
    replace: "callOf(call, true)",
    knownSeed: 40,
    breaks: ["P1"]
  },
  {
    name: "cut-words-are-the-last",
    file: "src/agent/arbiter/finalWords.ts",
    find: "if (flaw !== undefined && before === undefined) return",
    replace: "if (flaw !== undefined && before === undefined && !isCut(output)) return",
    also: [
      {
        file: "src/agent/arbiter/finalWords.ts",
        find: `return flaw === undefined ? { type: "whole", text }`,
        replace: `return flaw === undefined || isCut(output) ? { type: "whole", text }`
      }
    ],
    knownSeed: 22,
    breaks: ["P1"]
  },
  {
    name: "empty-reply-ends-a-lane",
    file: "src/agent/arbiter/finalWords.ts",
    find: "if (flaw !== undefined && before === undefined) return",
    replace: "if (flaw !== undefined && before === undefined && isCut(output)) return",
    knownSeed: 10,
    breaks: ["P2"]
  },
  {
    name: "broken-connection-is-not-tried-again",
    file: "src/agent/model/modelRequest.ts",
    find: "Effect.retry({ times: 1, while: isBroken })",
    replace: "Effect.retry({ times: 0, while: isBroken })",
    knownSeed: 8,
    breaks: ["P4"]
  },
  {
    name: "no-fallback-takes-over",
    file: "src/agent/model/Llm.ts",
    find: "if (!mayFallBack(completion.error)) break",
    replace: "break",
    knownSeed: 1,
    breaks: ["P4"]
  },
  {
    name: "failed-job-cannot-be-resumed",
    file: "src/agent/session/CoreJob.ts",
    find: `next.type === "stop" && left_ms > 0 ?`,
    replace: `next.type === "stop" && left_ms < 0 ?`,
    knownSeed: 22,
    breaks: ["P3"]
  },
  {
    name: "compaction-by-events",
    file: "src/agent/memory/Compactor.ts",
    find: "if (tokens <= limit * BEGINS_AT && fill <= FILL_BEGINS_AT) return",
    replace: "if ((laneOf(arbiter.state(), lane)?.window.length ?? 0) <= 12) return",
    also: [
      {
        file: "src/agent/memory/Compactor.ts",
        find: "if (fill <= FILL_BEGINS_AT && (yield* isClearlySmall(lane, prefix, BEGINS_AT))) return",
        replace: ""
      }
    ],
    knownSeed: 26,
    breaks: ["P6"]
  },
  {
    name: "compaction-asks-without-end",
    file: "src/agent/memory/writeSummary.ts",
    find: "asks < COMPACTION_ASKS_MAX; asks++",
    replace: "asks < 20; asks++",
    knownSeed: 22,
    breaks: ["P6"]
  },
  {
    name: "failed-compaction-frees-nothing",
    file: "src/agent/memory/writeSummary.ts",
    find: "yield* Effect.logWarning(`the compaction of ${lane} failed; stubs replace old events`)",
    replace: "return yield* Effect.interrupt",
    also: [
      {
        file: "src/agent/memory/Compactor.ts",
        find: "else backedOff.set(lane, tokens)",
        replace: ""
      }
    ],
    knownSeed: 88,
    breaks: ["P6"]
  }
]
