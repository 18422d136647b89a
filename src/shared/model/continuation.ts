/**
 * The reasoning of a model between its calls. It is kept with the calls that it led to and with nothing else: providers want it only there,
 * and an answer's text is known from the message that was sent. It goes back byte for byte, to the model that wrote it.
 */
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import { CONTINUATION_BYTES_MAX, type Continuation } from "#schema/Continuation.ts"
import type { Model } from "#schema/Config.ts"
import type { AssistantMessage, Message } from "./Conversation.ts"

type Writer = Pick<Model, "api" | "endpoint" | "model">

/**
 * The model itself, whatever name config.json gives it: an alias of the same endpoint shares its reasoning. It is asked for with each message of
 * each request.
 */
const writerOf = weakMemoize(({ endpoint, model }: Writer): string => `${new URL(endpoint).host} ${model}`)

/** The continuation of an answer, if it is short enough to be kept. */
export const continuationOf = (writer: Writer, reasoning: string | undefined): Continuation | undefined =>
  reasoning === undefined || Buffer.byteLength(JSON.stringify(reasoning)) > CONTINUATION_BYTES_MAX
    ? undefined
    : { api: writer.api, model: writerOf(writer), data: reasoning }

/** The reasoning of a message that this model wrote itself. */
export const reasoningOf = ({ continuation }: AssistantMessage, reader: Writer): string | undefined => {
  if (continuation === undefined) return undefined
  const { api, data, model } = continuation
  return api === reader.api && model === writerOf(reader) && typeof data === "string" ? data : undefined
}

/** Whether all steps of a turn have their reasoning since somebody last spoke to the model. */
export const isThoughtThrough = (messages: ReadonlyArray<Message>, reader: Writer): boolean => {
  const begin = messages.findLastIndex(({ role }, index) => role === "user" && messages[index - 1]?.role !== "tool")
  return messages
    .slice(begin + 1)
    .every(
      (message) =>
        message.role !== "assistant" || (message.calls ?? []).length === 0 || reasoningOf(message, reader) !== undefined
    )
}
