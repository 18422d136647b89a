/** Values of STATE as prompts show them: bounded one by one and together, and cut ones with their digest, by which they can be compared. */
import type { Schema } from "effect"
import { sha256 } from "#src/shared/events/hashChain.ts"
import type { StateValues } from "#src/shared/image/statePath.ts"

/** Characters of one field in a prompt, and of all of them together, as JSON. */
export const FIELD_SHOWN_CHARS_MAX = 4096
export const STATE_SHOWN_CHARS_MAX = 32 * 1024
/** Characters of a cut value that are shown; written as a text within JSON they may double. */
const BEGIN_CHARS = 1800
/** Characters of a digest that are shown. */
const DIGEST_CHARS = 16

const cut = (text: string, begins: number): Schema.Json => ({
  ...(begins === 0 ? {} : { begins: text.slice(0, begins).toWellFormed() }),
  chars: text.length,
  sha256: sha256(text).slice(0, DIGEST_CHARS),
  note: begins === 0 ? "left out: STATE is too long" : "cut: the field is too long"
})

/** The newest fields stand last, and are the last to be left out. */
export const shownValues = (values: StateValues): StateValues => {
  let room = STATE_SHOWN_CHARS_MAX
  const shown = Object.entries(values)
    .toReversed()
    .map(([name, value]) => {
      const text = JSON.stringify(value)
      const whole = text.length <= FIELD_SHOWN_CHARS_MAX ? value : cut(text, BEGIN_CHARS)
      const chars = JSON.stringify(whole).length
      if (chars > room) return [name, cut(text, 0)] as const
      room -= chars
      return [name, whole] as const
    })
  return Object.fromEntries(shown.toReversed())
}
