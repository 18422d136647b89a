/** Texts that are pasted into the chat of a terminal: the lines of each are one message, which is sent with the Enter after it. */

/** Characters of one pasted text. */
export const PASTE_CHARS_MAX = 512 * 1024

/** Tells the terminal to mark what is pasted, and to stop it. */
export const MARK_PASTES = "\u001b[?2004h"
export const UNMARK_PASTES = "\u001b[?2004l"

export const makePastedLines = () => {
  let lines: ReadonlyArray<string> = []
  let chars = 0
  let pasting = false
  const clear = () => {
    lines = []
    chars = 0
  }
  return {
    clear,
    /** The terminal's mark of the beginning or the end of a paste. */
    mark: (begins: boolean) => {
      pasting = begins
    },
    isPasting: () => pasting,
    /** The message that an entered line completes; undefined for a line within a paste, and null where the paste is longer than PASTE_CHARS_MAX. */
    entered: (line: string): string | null | undefined => {
      chars += line.length + 1
      if (chars <= PASTE_CHARS_MAX) lines = [...lines, line]
      if (pasting) return undefined
      const text = chars > PASTE_CHARS_MAX && lines.length > 0 ? null : lines.join("\n")
      clear()
      return text
    }
  }
}
