/** Structured answers of a model: the one tool of a call that exists in this call alone and runs nothing. */
import { Result, Schema } from "effect"
import type { ModelToolCall } from "#schema/Event.ts"
import type { ChatTool } from "./chatCompletion.ts"
import { llmView } from "./llmView.ts"

export interface AnswerTool<A> {
  readonly tool: ChatTool
  /** What the model answered, once for each call of the tool whose arguments fit. */
  answers(calls: ReadonlyArray<Pick<ModelToolCall, "input" | "name">>): ReadonlyArray<A>
}

export const answerTool = <S extends Schema.Decoder<unknown>>(
  name: string,
  purpose: string,
  schema: S
): AnswerTool<S["Type"]> => {
  const { description, input_schema, name: canonical } = llmView(name, purpose, schema)
  const wireName = canonical.replaceAll(".", "-")
  const decode = Schema.decodeUnknownResult(schema)
  return {
    tool: { type: "function", function: { name: wireName, description, parameters: input_schema } },
    answers: (calls) =>
      calls.flatMap(({ input, name }) => {
        // A model says the wire name; a name that it made up is kept as it is.
        const decoded = name.replaceAll(".", "-") === wireName ? decode(input) : undefined
        return decoded === undefined || Result.isFailure(decoded) ? [] : [decoded.success]
      })
  }
}
