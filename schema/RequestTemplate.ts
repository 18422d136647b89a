/** Parameters that config.json adds to each request of a model, beyond those with keys of their own in Choir. */
import { Schema } from "effect"

/** They say what is asked and in which form the answer comes; a template that set them would change what Choir does. */
const KEYS_OF_CHOIR = ["model", "messages", "tools", "stream", "n"]
const CHARS_MAX = 16_384
const DEPTH_MAX = 16

/** Stops one level below the limit, however deep the value is. */
const isDeeperThan = (value: Schema.Json, levels: number): boolean =>
  value !== null &&
  typeof value === "object" &&
  (levels === 0 || Object.values(value).some((inner: Schema.Json) => isDeeperThan(inner, levels - 1)))

const problems = (template: Readonly<Record<string, Schema.Json>>) => {
  const kept = KEYS_OF_CHOIR.filter((key) => Object.hasOwn(template, key))
  if (kept.length > 0)
    return kept.map((key) => ({ path: [key], issue: "is set by Choir and cannot be in a request template" }))
  if (isDeeperThan(template, DEPTH_MAX)) return [{ path: [], issue: `must not nest deeper than ${DEPTH_MAX} levels` }]
  if (JSON.stringify(template).length > CHARS_MAX)
    return [{ path: [], issue: `must not have more than ${CHARS_MAX} characters as JSON` }]
  return []
}

/** Keys that are added to each request of a model, or replace those that Choir would send; null leaves one out. */
export const RequestTemplate = Schema.Record(Schema.String, Schema.Json).check(Schema.makeFilter(problems))
