/**
 * Reasoning that its provider does not take back: one of another key, organization or server behind a router, whose proof it cannot check. Each of
 * its later requests would fail, so that it is left out.
 */
import type { Model } from "#schema/Config.ts"
import type { ModelError } from "#schema/Event.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { reasoningOf } from "#src/shared/model/continuation.ts"
import type { Message } from "#src/shared/model/Conversation.ts"

/** The words of providers about reasoning that came back. */
const OF_REASONING =
  /\bsignature\b|encrypted[_ ]content|(?:redacted[_ ])?thinking.{0,40}\bblocks?\b|reasoning[_ ](?:item|content|details)/iu

/** Whether a provider refused a request for the reasoning in it. */
export const isOfReasoning = ({ message, status }: ModelError): boolean =>
  (status === 400 || status === 422) && OF_REASONING.test(message)

/** The digests of the reasoning that goes back to this model. */
export const sentReasoning = (messages: ReadonlyArray<Message>, model: Model): ReadonlyArray<string> =>
  messages.flatMap((message) => {
    const reasoning = message.role === "assistant" ? reasoningOf(message, model) : undefined
    return reasoning === undefined ? [] : [sha256(reasoning)]
  })

/** The messages without the reasoning that was refused. */
export const withoutReasoning = (
  messages: ReadonlyArray<Message>,
  model: Model,
  refused: ReadonlySet<string>
): ReadonlyArray<Message> =>
  refused.size === 0
    ? messages
    : messages.map((message) => {
        const reasoning = message.role === "assistant" ? reasoningOf(message, model) : undefined
        if (reasoning === undefined || message.role !== "assistant" || !refused.has(sha256(reasoning))) return message
        const { continuation: _, ...kept } = message
        return kept
      })
