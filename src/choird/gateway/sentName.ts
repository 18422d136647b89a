/** The name that a person sees of an agent's file. It has no signs, and is never that of choird's own file (D60). Pure. */
import { seenText } from "#src/shared/text/seenText.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of a name. */
const NAME_CHARS_MAX = 120

/** Letters, digits and what ASCII has beside them, without the marks of paths and of headers. */
const NO_PART = /[^\p{L}\p{Mn}\p{Mc}\p{Nd} !#$%&'()+,.=@[\]^_`{}~⟨⟩-]/gu

/** Letters of other alphabets that look like those of the word `approval`, by the letter. */
const ALIKE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    a: "аαɑаᴀꭺ",
    p: "рρⲣᴘϸþᑭ",
    r: "гᴦⲅʀɼꭱяᴙ",
    o: "оοօσᴏ০٥০໐०ס߀ⲟө0",
    v: "ѵνᴠⴸѴ٧۷∨ט",
    l: "іӏιɩןاווӀⵏꓲｌʟ1i|ı"
  }).flatMap(([letter, others]) => Array.from(others, (other) => [other, letter] as const))
)

/** The letters and digits of a name, each as that which it looks like. */
const skeleton = (name: string, likeOf: (character: string) => string | undefined): string =>
  Array.from(
    name.normalize("NFKD").toLowerCase().normalize("NFKD"),
    (character) => likeOf(character) ?? (/\p{N}/u.test(character) ? "0" : character)
  )
    .join("")
    .replaceAll(/[^a-z0]/gu, "")

/** With the digits that look like letters as letters: the word may be written with them, and then they may follow it as a number. */
const asLetters = (name: string): string => skeleton(name, (character) => ALIKE.get(character))
const asDigits = (name: string): string =>
  skeleton(name, (character) => (/[0-9]/u.test(character) ? "0" : ALIKE.get(character)))

/** choird's own file is `approval-<number>.txt`; the word with a number is its own with any ending. */
const isOwn = (name: string): boolean =>
  /approval+[lo]*(?:0|txt|$)/u.test(asLetters(name)) || asDigits(name).includes("approval0")

const ENDING = /\.([A-Za-z0-9]{1,8})$/u

/** The name for a path that a tool gave. */
export const sentName = (path: string): string => {
  const given = path.split("/").at(-1) ?? ""
  const name = firstPart(seenText(given).replaceAll(NO_PART, "_"), NAME_CHARS_MAX).trim()
  if (name === "") return "file"
  return isOwn(given) ? `renamed.${ENDING.exec(name)?.[1] ?? "bin"}` : name
}
