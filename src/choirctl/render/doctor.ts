/** Findings of `choirctl doctor` for people. */
import type { Check } from "#src/choirctl/doctor/doctorTrials.ts"
import { paint, type Paint } from "#src/choirctl/terminal/paint.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"

const STYLES: Readonly<Record<Check["status"], Paint>> = { ok: "green", warn: "yellow", fail: "red", skip: "dim" }

/** A line for each check, and the fix below what needs one. */
export const doctorText = ({ checks }: { readonly checks: ReadonlyArray<Check> }, color: boolean): string => {
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
