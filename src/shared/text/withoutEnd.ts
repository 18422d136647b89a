/** The end of a text cut off by its characters. Pure. */

/** A text without these characters at its end. A pattern such as `/[.]+$/` looks at a run of them within the text again from each of its characters. */
export const withoutEnd = (text: string, characters: string): string => {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1
  return text.slice(0, end)
}
