/** A scripted model that browses over HTTP: what it does next depends on the tree that the last answer showed. */
import type { Schema } from "effect"
import { type ChatRequest, type Message, textOf } from "#demo/offline-model/ChatCompletion.ts"
import { answer, callTools, type ProviderRequest, type Reply } from "../support/testing/Provider.ts"

/** One call of choir.web.browse; `on` finds the line of the element that it is of. */
export interface BrowseStep {
  readonly input: { readonly [key: string]: Schema.Json }
  readonly on?: RegExp
}

const messagesOf = ({ body }: ProviderRequest): ReadonlyArray<Message> => (body as typeof ChatRequest.Type).messages

/** Whether a message is of a person, or the task of a job, and not one of Choir's own notes. */
const isAsked = (message: Message) => message.role === "user" && !textOf(message).startsWith("<choir-note>")

/** What the lane is asked at present. */
export const lastAsked = (request: ProviderRequest): string => {
  const message = messagesOf(request).findLast(isAsked)
  return message === undefined ? "" : textOf(message)
}

/** Whether a job with this task asks. */
export const isOfJob = (request: ProviderRequest, task: string): boolean =>
  messagesOf(request).some((message) => message.role === "user" && textOf(message).includes(`\nTask:\n${task}`))

/** The results of the calls since the lane was asked, in order. */
export const resultsOf = (request: ProviderRequest): ReadonlyArray<string> => {
  const messages = messagesOf(request)
  return messages
    .slice(messages.findLastIndex(isAsked) + 1)
    .flatMap((message) => (message.role === "tool" ? [textOf(message)] : []))
}

const REF = /\[ref=((?:f\d+)?e\d+)\]/u

/** Makes one call of the script after the other, and ends with a text. */
export const browsing =
  (steps: ReadonlyArray<BrowseStep>, end: (results: ReadonlyArray<string>) => string) =>
  (request: ProviderRequest): Reply => {
    const results = resultsOf(request)
    const step = steps[results.length]
    if (step === undefined) return answer(end(results))
    const { input, on } = step
    const lines = (results.at(-1) ?? "").split(/\\n|\n/u)
    const ref =
      on === undefined ? undefined : REF.exec(lines.find((line) => on.test(line) && REF.test(line)) ?? "")?.[1]
    return callTools([{ name: "choir-web-browse", input: { ...input, ...(ref === undefined ? {} : { ref }) } }])
  }
