/** A model that says what a test wants, in place of {@link Llm}; for one that is asked over HTTP see Provider. */
import { Effect, Layer, type Schema } from "effect"
import { ToolName, toWireName } from "#schema/Tool.ts"
import type { Model } from "#schema/Config.ts"
import { boundModel } from "#src/agent/settings/AgentSettings.ts"
import { CODECS } from "#src/shared/model/codecs.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { bodyRefusal } from "#demo/dialects/Dialect.ts"
import { type Completion, Llm, type Spoken } from "#src/agent/model/Llm.ts"
import { TRAITS, RefusedRequests } from "./Provider.ts"

/** An answer; what it leaves out is filled in: no tool calls, `stop`, 10 tokens in and 5 out. */
export type Said = Partial<Completion>

/** What a scripted model sees and says. It may wait, and it never fails: a provider's failure is `error` in what it says. */
export type Script = (
  messages: ReadonlyArray<Message>,
  tools: ReadonlyArray<Tool>,
  heard?: (step: Spoken) => Effect.Effect<void>
) => Effect.Effect<Said>

/** A model's answer in text. */
export const says = (text: string): Said => ({ text })

/** A model's tool calls, by canonical names. */
export const calls = (...wanted: ReadonlyArray<readonly [name: string, input: Schema.Json]>): Said => ({
  tool_calls: wanted.map(([name, input]) => ({ name: toWireName(ToolName.make(name)), input })),
  finish_reason: "tool_calls"
})

/** Says one thing after the other, whatever it is asked. A request too many is a defect of the test. */
export const inOrder = (...said: ReadonlyArray<Said>): Script => {
  const left = [...said]
  return () =>
    Effect.suspend(() => {
      const next = left.shift()
      return next === undefined
        ? Effect.die(new Error(`the script has ${said.length} answers and was asked for one more`))
        : Effect.succeed(next)
    })
}

/** Whether a prompt asks for a compaction of its lane. */
export const isCompaction = (messages: ReadonlyArray<Message>): boolean => messages.some(isOfCompaction)

const isOfCompaction = ({ content }: Message): boolean => content?.startsWith("<choir-note>\nCompaction:") === true

/** Whether a prompt is a core job's; edge's begin otherwise. */
export const isCore = (messages: ReadonlyArray<Message>): boolean =>
  messages.some(({ content, role }) => role === "user" && content.includes("\nTask:\n"))

const OWN_WORDS = /^<choir-note>\n(?!Report:|Further instruction:)/u

const STILL = /^<choir-note>\nStill to be answered, the user's message:\n([^]*)\n<\/choir-note>$/u

/** The messages with Choir's own notes in a role of their own, so that a script tells them from what a lane is asked. */
const sorted = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  messages.map((message) => {
    if (message.role !== "user") return message
    const still = STILL.exec(message.content)?.[1]
    if (still !== undefined) return { role: "user", content: still }
    return OWN_WORDS.test(message.content) ? { role: "system", content: message.content } : message
  })

/** The body of a request, once it has passed the checks of a provider: one that it would refuse is a defect of its maker. */
export const checkedBody = (
  model: Model | undefined,
  messages: ReadonlyArray<Message>,
  tools: ReadonlyArray<Tool>,
  count: (text: string) => number = TRAITS.count
): Effect.Effect<unknown> => {
  if (model === undefined) return Effect.undefined
  const body = parseJson(CODECS.chat.body({ model, messages, tools }))
  const refusal = bodyRefusal(body, { ...TRAITS, count, context_window: model.context_window })
  return refusal === undefined ? Effect.succeed(body) : Effect.die(new RefusedRequests({ refusals: [refusal] }))
}

/** Answers every request by the script, in no time of its own, once it has passed the checks of a provider. */
export const layerScriptedModel = (script: Script): Layer.Layer<Llm> =>
  Layer.succeed(
    Llm,
    Llm.of({
      complete: (model, messages, tools, config, asking) =>
        Effect.map(
          Effect.andThen(
            checkedBody(boundModel(config, model), messages, tools),
            script(sorted(messages), tools, asking?.heard)
          ),
          (said) => ({
            model,
            tool_calls: [],
            finish_reason: "stop",
            usage: { input_tokens: 10, output_tokens: 5 },
            latency_ms: 0,
            ...said
          })
        )
    })
  )
