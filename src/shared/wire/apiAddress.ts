/** The address of a model's API as config.json has it. Pure. */
import type { ModelApi } from "#schema/Continuation.ts"

/** A request's own path, which people copy along with the address. */
const REQUEST_PATH = /(?:\/chat\/completions|\/responses|\/messages)?\/*$/u

/** The address without the path of a request, which Choir adds by itself. */
export const apiAddress = (text: string): string => text.trim().replace(REQUEST_PATH, "")

/** The API of a request's path, where an address has one at its end. */
export const apiNamedBy = (text: string): ModelApi | undefined => {
  const [, path] = /\/(chat\/completions|responses|messages)\/*$/u.exec(text.trim()) ?? []
  if (path === undefined) return undefined
  return path === "responses" || path === "messages" ? path : "chat"
}

/** Whether an address has the path of a request at its end, so that no request to it can succeed. */
export const hasRequestPath = (text: string): boolean => apiNamedBy(text) !== undefined
