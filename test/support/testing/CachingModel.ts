/**
 * A recording model that checks each request as OpenAI does, counts its tokens with o200k_base, and finds of it in its cache what OpenAI would: the
 * longest beginning that one of the last requests had too, from 1,024 tokens in steps of 128.
 */
import { Effect, Layer } from "effect"
import { DIALECTS } from "#demo/dialects/Dialect.ts"
import { isObject } from "#demo/dialects/jsonKeys.ts"
import { boundModel } from "#src/agent/settings/AgentSettings.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { countTokens, Meter } from "../providers/Meter.ts"
import { checkedBody, isCompaction, type Script } from "./ScriptedModel.ts"

/** One request, in tokens. */
export interface Counted {
  readonly lane: "edge" | "core"
  readonly isCompaction: boolean
  readonly input: number
  readonly cached: number
  readonly output: number
}

const isOfJob = ({ content, role }: Message): boolean => role === "user" && content.includes("\nTask:\n")

/** Answers by the script; `counted` grows with each request. A request that OpenAI would refuse is a defect. */
export const layerCachingModel = (script: Script, counted: Array<Counted>): Layer.Layer<Llm> => {
  const meter = new Meter()
  return Layer.succeed(
    Llm,
    Llm.of({
      complete: Effect.fnUntraced(function* (model, messages, tools, config) {
        const body = yield* checkedBody(boundModel(config, model), messages, tools, (text) => meter.count(text))
        const { cached, input } = meter.prompt(DIALECTS.openai, isObject(body) ? body : {})
        const said = yield* script(messages, tools)
        counted.push({
          lane: messages.some(isOfJob) ? "core" : "edge",
          isCompaction: isCompaction(messages),
          input,
          cached,
          output: countTokens(JSON.stringify([said.text ?? "", said.tool_calls ?? []]))
        })
        return {
          model,
          tool_calls: [],
          finish_reason: "stop",
          usage: { input_tokens: input, output_tokens: 20 },
          prompt_tokens: input,
          latency_ms: 0,
          ...said
        }
      })
    })
  )
}
