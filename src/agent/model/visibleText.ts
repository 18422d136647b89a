/** The words of an answer that is being written, as far as they may be shown: no secret, no thought and no call that is written as text is in them. */
import { makeSpokenText } from "#src/shared/model/spokenText.ts"
import type { SecretStore } from "#src/agent/settings/SecretStore.ts"

/**
 * Takes pieces of one answer and returns what may be shown of it since the last one. `takeBack` is called where all that was shown before turns
 * out to be thoughts.
 */
export const makeVisibleText = (
  { begun, scrub }: Pick<SecretStore["Service"], "begun" | "scrub">,
  takeBack: () => void = () => {}
) => {
  const spoken = makeSpokenText("left out")
  let waiting = ""
  let isBlank = true
  return (piece: string): string => {
    const { isVoid, text } = spoken.take(piece)
    if (isVoid) {
      if (!isBlank) takeBack()
      waiting = ""
      isBlank = true
    }
    waiting += text
    // Blanks in front say nothing, and a model may send them for ever.
    if (isBlank) waiting = waiting.trimStart()
    // Whole secrets go first: the end of one may look like the beginning of another, and would be held back without the rest.
    waiting = scrub(waiting)
    const shown = waiting.slice(0, waiting.length - begun(waiting))
    waiting = waiting.slice(shown.length)
    isBlank &&= shown === ""
    return shown
  }
}
