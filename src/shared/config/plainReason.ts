/** A decoder's words on one value, as a person would say them. */

const KINDS: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  number: "a number",
  object: "an object",
  string: "a string"
}

const LENGTH = /^Expected a value with a length of at (least|most) (\d+)$/u

/** A sentence about `it`, or the words as they are where a schema has its own. */
export const plainReason = (reason: string): string => {
  if (reason === "Missing key") return "it is missing"
  const [, bound, length] = LENGTH.exec(reason) ?? []
  if (bound !== undefined) return bound === "least" ? "it must not be empty" : `it may be at most ${length} long`
  if (!reason.startsWith("Expected ")) return reason
  const expected = reason.slice("Expected ".length).replace(/^a value /u, "")
  const choices = expected.split(" | ")
  return `it must be ${choices.length > 1 ? `one of ${choices.join(", ")}` : (KINDS[expected] ?? expected)}`
}
