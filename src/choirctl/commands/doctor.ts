/** choirctl doctor: the state of the host. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import type { Check } from "#src/choirctl/doctor/hostChecks.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { printAdvice, withProgress } from "#src/choirctl/terminal/print.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { paint, type Paint, safeLine } from "#src/choirctl/terminal/text.ts"

const STYLES: Readonly<Record<Check["status"], Paint>> = { ok: "green", warn: "yellow", fail: "red", skip: "dim" }

/** A line for each check, and the fix below what needs one. */
const doctorText = ({ checks }: { readonly checks: ReadonlyArray<Check> }, color: boolean): string => {
  const width = Math.max(0, ...checks.map(({ name }) => name.length))
  return checks
    .flatMap(({ detail, fix, name, status }) => [
      `${paint(color, STYLES[status], status.padEnd(4))}  ${name.padEnd(width)}  ${safeLine(detail)}`,
      ...(fix === undefined || status === "ok" || status === "skip"
        ? []
        : [`${" ".repeat(8 + width)}fix: ${safeLine(fix)}`])
    ])
    .join("\n")
}

export const doctor = Command.make(
  "doctor",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { examine } = yield* Effect.promise(() => import("#src/choirctl/doctor/examine.ts"))
    const checks = yield* onHost(examine(home)).pipe(withProgress("checking this host"))
    const ok = checks.every(({ status }) => status !== "fail")
    yield* printAdvice({ ok, checks }, doctorText)
    if (!ok) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(Command.withExamples([{ command: "choirctl doctor" }]))
