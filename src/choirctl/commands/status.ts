/** choirctl status: choird, its database, runtime, gateways and agents at a glance. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { ask } from "#src/choirctl/client/ask.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { statusText } from "#src/choirctl/render/status.ts"

export const status = Command.make(
  "status",
  {},
  Effect.fnUntraced(function* () {
    const all = yield* ask("system", (choird) => choird.status())
    yield* printAdvice(all, statusText)
  })
).pipe(
  Command.withDescription("Show choird, its database, runtime, gateways and agents"),
  Command.withExamples([{ command: "choirctl status --json" }])
)
