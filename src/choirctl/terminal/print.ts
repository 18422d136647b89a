/** Results of a command, as data for programs or text for people, and a sign of progress. */
import { Effect, Ref } from "effect"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { root } from "./root.ts"
import { Screen } from "./Screen.ts"
import { jsonText } from "./text.ts"

/** Time before choirctl shows that it is still working. */
const PROGRESS_DELAY_MS = 500
/** Between two pictures of that sign. */
const PROGRESS_FRAME_MS = 100

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
const ERASE_LINE = "\r\u{1B}[2K"

/** The services that showing progress needs. */
export type Progress = Effect.Services<typeof root> | Screen

/** Makes room where the sign may stand; the next picture draws it again. */
export const eraseLine = Effect.gen(function* () {
  const { json } = yield* root
  const screen = yield* Screen
  if (!json && screen.transient) yield* screen.draw(ERASE_LINE)
})

/** Shows what is being done on a terminal's standard error while `work` takes longer than PROGRESS_DELAY_MS. */
export const withProgress =
  (doing: string | (() => string)) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const { json } = yield* root
      const screen = yield* Screen
      if (json || !screen.transient) return yield* work
      const drawn = yield* Ref.make(0)
      const frame = Ref.getAndUpdate(drawn, (count) => count + 1).pipe(
        Effect.flatMap((count) =>
          screen.draw(`${ERASE_LINE}${FRAMES[count % FRAMES.length]} ${typeof doing === "string" ? doing : doing()}`)
        ),
        Effect.andThen(Effect.sleep(PROGRESS_FRAME_MS))
      )
      const erase = Effect.flatMap(Ref.get(drawn), (count) => (count === 0 ? Effect.void : screen.draw(ERASE_LINE)))
      const spin = Effect.andThen(Effect.sleep(PROGRESS_DELAY_MS), Effect.forever(frame))
      return yield* Effect.raceFirst(work, spin).pipe(Effect.ensuring(erase))
    })

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
