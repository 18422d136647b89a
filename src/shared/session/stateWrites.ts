/** The values that a model wrote into the STATE of a skill, out of sight: a step is shown those of its scope, and no other text shows any. */
import type { ModelToolCall } from "#schema/Event.ts"

const TRANSITION = "choir.skill.transition"

/** A call as prompts and searches show it: of a transition's writes the names of their fields. */
export const withoutWrites = (call: ModelToolCall): ModelToolCall => {
  const { input, name } = call
  if (name.replaceAll("-", ".") !== TRANSITION) return call
  if (typeof input !== "object" || input === null || !("writes" in input)) return call
  const { judge_blocks: _, writes, ...told } = input
  const fields = typeof writes === "object" && writes !== null ? Object.keys(writes) : []
  return { ...call, input: { ...told, writes: Object.fromEntries(fields.map((field) => [field, "(in STATE)"])) } }
}
