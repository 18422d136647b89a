/** Brave's web search API on loopback, which refuses what the real one refuses. */
import { type Answered, type Asked, answeringServer } from "./answeringServer.ts"

export const BRAVE_KEY = "brave-key-of-tests"

const WINDOWS = { "x-ratelimit-limit": "1, 15000", "x-ratelimit-policy": "1;w=1, 15000;w=2592000" }
const refusal = (status: number, code: string, detail: string): Answered => ({
  status,
  headers: WINDOWS,
  body: { type: "ErrorResponse", error: { id: "e", status, code, detail } }
})

const PARAMETERS: Readonly<Record<string, RegExp>> = {
  q: /^.{1,400}$/su,
  count: /^(?:[1-9]|1\d|20)$/u,
  offset: /^\d$/u,
  safesearch: /^(?:off|moderate|strict)$/u,
  freshness: /^(?:pd|pw|pm|py|\d{4}-\d{2}-\d{2}to\d{4}-\d{2}-\d{2})$/u,
  text_decorations: /^[01]$/u
}

const problemOf = ({ headers, method, url }: Asked): Answered | undefined => {
  if (method !== "GET" || url.pathname !== "/res/v1/web/search") return refusal(404, "NOT_FOUND", "no such endpoint")
  if (headers["x-subscription-token"] !== BRAVE_KEY)
    return refusal(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")
  if (!url.searchParams.has("q")) return refusal(422, "VALIDATION", "q: field required")
  for (const [name, value] of url.searchParams)
    if (PARAMETERS[name]?.test(value) !== true) return refusal(422, "VALIDATION", `${name}: invalid value`)
  return (url.searchParams.get("q") ?? "").split(/\s+/u).length > 50
    ? refusal(422, "VALIDATION", "q: too many words")
    : undefined
}

export interface BraveResult {
  readonly title: string
  readonly url: string
  readonly description?: string
  readonly age?: string
}

/** `limits` are what the first requests are answered with, before there are results. */
export const braveServer = (
  results: ReadonlyArray<BraveResult>,
  limits: ReadonlyArray<Readonly<Record<string, string>>> = []
) => {
  let limited = 0
  return answeringServer((asked) => {
    const problem = problemOf(asked)
    if (problem !== undefined) return problem
    const limit = limits[limited++]
    if (limit !== undefined)
      return {
        ...refusal(429, "RATE_LIMITED", "Request rate limit exceeded for plan."),
        headers: { ...WINDOWS, ...limit }
      }
    const count = Number(asked.url.searchParams.get("count") ?? 20)
    return {
      status: 200,
      headers: { ...WINDOWS, "x-ratelimit-remaining": "0, 14999", "x-ratelimit-reset": "1, 86400" },
      body: {
        type: "search",
        query: { original: asked.url.searchParams.get("q"), more_results_available: results.length > count },
        web: { type: "search", results: results.slice(0, count), family_friendly: true }
      }
    }
  })
}
