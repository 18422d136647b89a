/** A refusal with what to do about it, in the words of a chat. Pure. */
import type { AgentId } from "#schema/Ids.ts"
import type { Answer } from "./Answer.ts"

/** The name of a file with its ending. */
const FILE = /^[\w/.-]*\w\.\w/u

/** A text with a capital and a full stop; the name of a file stands as it is written. */
export const sentence = (text: string): string =>
  `${FILE.test(text) ? text.charAt(0) : text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/u.test(text) ? "" : "."}`

export interface Refused {
  readonly message: string
  readonly hint?: string
}

/** The name of an agent stands as it is written: "Choir is stopped." would speak of all of Choir. */
export const sentenceOn = (agent_id: AgentId, text: string): string =>
  text.startsWith(`${agent_id} `) ? `${agent_id}${sentence(text.slice(agent_id.length))}` : sentence(text)

/** The order of a hint for the host that a chat can give as well. */
const CHAT_ORDER = /^choirctl (?<words>agent build|agent (?<verb>restart|start|stop)) (?<agent>[^\s-]\S*)$/u

export const chatOrder = (command: string): string | undefined => {
  const { agent, verb, words } = CHAT_ORDER.exec(command)?.groups ?? {}
  return agent === undefined ? undefined : `/${verb ?? words} ${agent}`
}

/** Any other command of the host stands as it is typed. */
const advice = (hint: string): string => {
  const order = chatOrder(hint)
  if (order !== undefined) return `Send ${order}.`
  return hint.startsWith("choirctl ") ? `On the host: ${hint}` : sentence(hint)
}

export const refusedAnswer = ({ hint, message }: Refused, shown = sentence(message)): Answer => ({
  kind: "refusal",
  text: [shown, ...(hint === undefined || hint === "" ? [] : [advice(hint)])].join(" ")
})
