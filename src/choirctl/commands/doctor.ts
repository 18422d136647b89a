/** choirctl doctor: whether this host and home have what Choir needs. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { onHost } from "#src/choirctl/Host.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/failure.ts"
import { printAdvice } from "#src/choirctl/print.ts"
import { withProgress } from "#src/choirctl/progress.ts"
import { doctorText } from "#src/choirctl/render/doctor.ts"
import { root } from "#src/choirctl/root.ts"

export const doctor = Command.make(
  "doctor",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { examine } = yield* Effect.promise(() => import("#src/choirctl/examine.ts"))
    const checks = yield* onHost(examine(home)).pipe(withProgress("looking around"))
    const ok = checks.every(({ status }) => status !== "fail")
    yield* printAdvice({ ok, checks }, doctorText)
    if (!ok) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(
  Command.withDescription("Try out what Choir needs on this host; says how to mend what does not work"),
  Command.withExamples([{ command: "choirctl doctor" }])
)
