/** The words of an answer that is being written, as far as they may be shown: no secret and no thought is in them. */
import type { SecretStore } from "#src/agent/settings/SecretStore.ts"

/** Some servers put a model's thoughts in front of its answer, between these. */
const TAGS = ["think", "thinking", "reasoning"]

/** Takes pieces of one answer and returns what may be shown of it since the last one. */
export const makeVisibleText = ({ begun, scrub }: Pick<SecretStore["Service"], "begun" | "scrub">) => {
  let waiting = ""
  let state: "undecided" | "thinking" | "thought" | "speaking" = "undecided"
  let closing = ""

  const decide = () => {
    // Blanks in front say nothing, and a model may send them for ever.
    waiting = waiting.trimStart()
    if (TAGS.some((tag) => `<${tag}>`.startsWith(waiting))) return
    const tag = TAGS.find((tag) => waiting.startsWith(`<${tag}>`))
    state = tag === undefined ? "speaking" : "thinking"
    closing = `</${tag ?? ""}>`
  }
  const skipThoughts = () => {
    const end = waiting.indexOf(closing)
    if (end >= 0) state = "thought"
    waiting = end < 0 ? waiting.slice(-closing.length) : waiting.slice(end + closing.length)
  }
  return (piece: string): string => {
    waiting += piece
    if (state === "undecided") decide()
    if (state === "thinking") skipThoughts()
    if (state === "thought") {
      waiting = waiting.trimStart()
      if (waiting !== "") state = "speaking"
    }
    if (state !== "speaking") return ""
    // Whole secrets go first: the end of one may look like the beginning of another, and would be held back without the rest.
    waiting = scrub(waiting)
    const shown = waiting.slice(0, waiting.length - begun(waiting))
    waiting = waiting.slice(shown.length)
    return shown
  }
}
