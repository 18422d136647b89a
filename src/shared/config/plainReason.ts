/** A decoder's words on one value, as a person would say them. */

const KINDS: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  number: "a number",
  object: "an object",
  string: "a string",
  "a string representing a finite number": "a number"
}

const LENGTH = /^Expected a value with a length of at (least|most) (\d+)$/u

/** A choice between objects that one member tells apart, as a decoder prints each. */
const MEMBER = /^\{ readonly "([^"]+)": ("[^"]*"), \.\.\. \}$/u

/** The words on a choice between objects; undefined for any other. */
const memberReason = (choices: ReadonlyArray<string>): string | undefined => {
  const members = choices.map((choice) => MEMBER.exec(choice))
  const key = members[0]?.[1]
  if (key === undefined || members.some((member) => member?.[1] !== key))
    return choices.every((choice) => choice === "object" || choice.startsWith("{ readonly "))
      ? "it must be an object"
      : undefined
  const values = members.map((member) => member?.[2])
  return `its "${key}" must be ${values.length > 1 ? "one of " : ""}${values.join(", ")}`
}

/** A sentence about `it`, or the words as they are where a schema has its own. */
export const plainReason = (reason: string): string => {
  if (reason === "Missing key") return "it is missing"
  const [, bound, length] = LENGTH.exec(reason) ?? []
  if (bound !== undefined) return bound === "least" ? "it must not be empty" : `it may be at most ${length} long`
  if (!reason.startsWith("Expected ")) return reason
  const expected = reason.slice("Expected ".length).replace(/^a value /u, "")
  const choices = expected.split(" | ")
  return (
    memberReason(choices) ??
    `it must be ${choices.length > 1 ? `one of ${choices.join(", ")}` : (KINDS[expected] ?? expected)}`
  )
}
