/** How a command hands over its result: as data for programs, as text for people. */
import { Effect } from "effect"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { jsonText } from "./jsonText.ts"
import { root } from "./root.ts"
import { Screen } from "./Screen.ts"

/** With --json the value as one document on one line, else what `text` makes of it. */
export const print = Effect.fnUntraced(function* <A>(value: A, text: (value: A, color: boolean) => string) {
  const { json } = yield* root
  const screen = yield* Screen
  const shown = json ? jsonText(value) : text(value, screen.color)
  if (shown !== "") yield* screen.print(shown)
})

/** As {@link print}, for a text of Choir's own that names commands: they are about the home that the flags name. */
export const printAdvice = Effect.fnUntraced(function* <A>(value: A, text: (value: A, color: boolean) => string) {
  const { home } = yield* root
  yield* print(value, (value, color) => onHome(home, text(value, color)))
})
