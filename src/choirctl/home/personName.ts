/** The name in config.json of the person who sets up a home with a phone. Pure. */
import { ResourceName } from "#schema/Ids.ts"

const PERSON_NAME_CHARS_MAX = 40

/** The name where theirs has no letter that a name of config.json can begin with, or is that of something else in a new home. */
const PHONE = "phone"
const TAKEN: ReadonlySet<string> = new Set(["telegram", "terminal"])

const MARKS = /\p{M}/gu
const OTHERS = /[^a-z0-9]+/gu
const EDGES = /^-|-$/gu

/** @param first_name as the messenger tells it, which can be any text. */
export const personName = (first_name: string | undefined): ResourceName => {
  const words = (first_name ?? "").normalize("NFKD").replaceAll(MARKS, "").toLowerCase().replaceAll(OTHERS, "-")
  const name = words.replaceAll(EDGES, "").slice(0, PERSON_NAME_CHARS_MAX).replace(EDGES, "")
  return ResourceName.make(/^[a-z]/u.test(name) && !TAKEN.has(name) ? name : PHONE)
}
