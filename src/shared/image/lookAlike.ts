/** Names of tools and skills that a person takes for another one. They are plain letters, so that no other alphabet is needed. Pure. */

/** Characters and pairs that are hard to tell apart, in the order in which they are replaced. */
const ALIKE: ReadonlyArray<readonly [RegExp, string]> = [
  [/[._-]/gu, ""],
  [/0/gu, "o"],
  [/[1i]/gu, "l"],
  [/5/gu, "s"],
  [/rn/gu, "m"],
  [/vv/gu, "w"]
]

/** Names that look alike have the same one. */
const skeleton = (name: string): string =>
  ALIKE.reduce((text, [alike, one]) => text.replaceAll(alike, one), name.toLowerCase())

const OWN = skeleton("choir")

/** Whether a name begins like those of Choir's own tools. */
export const looksOwn = (name: string): boolean => skeleton(name).startsWith(OWN)

/** The first of the other names for which this one may be taken. */
export const lookAlike = (name: string, others: Iterable<string>): string | undefined => {
  const own = skeleton(name)
  for (const other of others) if (other !== name && skeleton(other) === own) return other
  return undefined
}
