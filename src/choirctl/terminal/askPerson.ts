/** One question to the person at the terminal. */
import { Effect } from "effect"
import { Prompt } from "effect/cli"
import { Screen } from "./Screen.ts"

/** Asks. After Ctrl-C, what is printed next begins on a line of its own and not behind the question. */
export const askPerson = <A>(prompt: Prompt.Prompt<A>) =>
  Prompt.run(prompt).pipe(Effect.tapError(() => Effect.flatMap(Screen, (screen) => screen.draw("\n"))))
