/** Has choird read, check and stage the files of its home. */
import { Effect, Option, Stream } from "effect"
import { type Problem, problemText } from "#src/shared/config/configProblems.ts"
import { askStream } from "./ask.ts"
import { CommandFailed, EXIT, failed, refusedByChoird, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { jsonText } from "#src/choirctl/terminal/jsonText.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

/** With --json the problems are a list of paths and reasons beside the pinned error. */
export const refused = Effect.fnUntraced(function* (message: string, problems: ReadonlyArray<Problem>, hint: string) {
  const { json } = yield* root
  const screen = yield* Screen
  const error = { type: "CONFIG", message, hint }
  if (json) {
    yield* screen.print(jsonText({ ok: false, error, problems }))
    return yield* new Unsuccessful({ exit_code: EXIT.config })
  }
  for (const problem of problems) yield* screen.note(safeLine(problemText(problem)))
  return yield* new CommandFailed({ type: error.type, problem: error.message, hint, exit_code: EXIT.config })
})

/** Follows a load to its end: steps and warnings go to standard error, problems become the failure. */
export const loadConfig = Effect.gen(function* () {
  const screen = yield* Screen
  const steps = askStream("configuration", (choird) => choird.load())
  const last = yield* steps.pipe(
    Stream.tap((step) => (step.type === "step" ? screen.note(safeLine(step.text)) : Effect.void)),
    Stream.runLast
  )
  const end = Option.getOrUndefined(last)
  if (end?.type === "failed") {
    const { error, problems = [] } = end
    return error.type === "CONFIG"
      ? yield* refused(`nothing is staged: ${error.message}`, problems, error.hint ?? "choirctl config validate")
      : yield* refusedByChoird(error)
  }
  if (end?.type !== "done")
    return yield* failed("LOAD_BROKE_OFF", "choird ended before everything was read", "choirctl config load")
  for (const warning of end.result.warnings) yield* screen.note(`warning: ${safeLine(warning)}`)
  return end.result
})
