/** A refusal with what to do about it, in the words of a chat. Pure. */
import type { Answer } from "./Answer.ts"

export const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/u.test(text) ? "" : "."}`

export interface Refused {
  readonly message: string
  readonly hint?: string
}

/** A command of the host stands as it is typed. */
const advice = (hint: string): string => (hint.startsWith("choirctl ") ? `On the host: ${hint}` : sentence(hint))

export const refusedAnswer = ({ hint, message }: Refused): Answer => ({
  kind: "refusal",
  text: [sentence(message), ...(hint === undefined || hint === "" ? [] : [advice(hint)])].join(" ")
})
