/** choirctl doctor: whether this host and home have what Choir needs. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { withProgress } from "#src/choirctl/terminal/progress.ts"
import { doctorText } from "#src/choirctl/render/doctor.ts"
import { root } from "#src/choirctl/terminal/root.ts"

export const doctor = Command.make(
  "doctor",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { examine } = yield* Effect.promise(() => import("#src/choirctl/doctor/examine.ts"))
    const checks = yield* onHost(examine(home)).pipe(withProgress("looking around"))
    const ok = checks.every(({ status }) => status !== "fail")
    yield* printAdvice({ ok, checks }, doctorText)
    if (!ok) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(
  Command.withDescription("Try out what Choir needs on this host; says how to mend what does not work"),
  Command.withExamples([{ command: "choirctl doctor" }])
)
