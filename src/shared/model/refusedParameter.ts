/** What to change in the requests to a model whose provider answered 400 and named one of their parameters (D47). */
import { Predicate } from "effect"
import type { ParameterChanges } from "./requestParameters.ts"

/** Without these there is no request. */
const NEEDED: ReadonlySet<string> = new Set(["model", "messages", "tools"])

/** A limit of the answer may get its other name and is never left out: what a call reserves of a budget counts on it. */
const LIMITS: ReadonlySet<string> = new Set(["max_tokens", "max_completion_tokens"])

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

const wordsOf = (body: unknown): { readonly message: string; readonly param: unknown } => {
  const error = Predicate.hasProperty(body, "error") ? body.error : body
  const message = Predicate.hasProperty(error, "message") ? error.message : error
  return {
    message: typeof message === "string" ? message : "",
    param: Predicate.hasProperty(error, "param") ? error.param : undefined
  }
}

/** The parameter of the request that an answer names: by itself, or as the only one in its words. */
const named = (said: string, sent: ReadonlyArray<string>): string | undefined => {
  const { message, param } = wordsOf(parse(said))
  const keys = sent.filter((key) => !NEEDED.has(key))
  if (typeof param === "string" && param !== "") return keys.find((key) => key === param)
  const found = keys.filter((key) => new RegExp(`(?<![a-z_])${key}(?![a-z_])`, "u").test(message))
  return found.length === 1 ? found[0] : undefined
}

/**
 * The changes with one more, or `undefined` where the answer names none that can be made. `sent` are the keys of the refused request. Each
 * key changes once, so that the questions end.
 */
export const withoutRefused = (
  said: string,
  sent: ReadonlyArray<string>,
  changes: ParameterChanges
): { readonly parameter: string; readonly changes: ParameterChanges } | undefined => {
  const parameter = named(said, sent)
  if (parameter === undefined) return undefined
  if (!LIMITS.has(parameter)) return { parameter, changes: new Map(changes).set(parameter, undefined) }
  const isRenamed = [...changes.values()].includes(parameter)
  if (parameter !== "max_tokens" || isRenamed || sent.includes("max_completion_tokens")) return undefined
  return { parameter, changes: new Map(changes).set(parameter, "max_completion_tokens") }
}
