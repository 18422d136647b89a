/** Whether agents have a browser here, by starting Chromium once as choird does: in its own sandbox, and under an unprivileged uid where this is root. */
import { chownSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { CHROMIUM_FIX, chromiumProgram } from "#src/shared/web/chromium.ts"
import { AS_NOBODY, check, type Check, tryProgram } from "./doctorTrials.ts"

const NOBODY = 65_534
const FLAGS =
  "--headless --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking --disable-component-update --disable-sync"

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "choir-doctor-"))
    if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY)
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }))
)

const SANDBOX_FIX =
  "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"

/** @param code how Chromium ended, if it did. */
export const browserResult = (program: string | undefined, code: number | undefined, isRoot: boolean): Check => {
  if (program === undefined)
    return check("browser", "warn", "Chromium is not installed, so agents read pages without a browser", CHROMIUM_FIX)
  if (code === 0) return check("browser", "ok", `${program}, in its own sandbox`)
  return isRoot
    ? check(
        "browser",
        "warn",
        "Chromium does not start in its own sandbox; choird runs it without, as a user of its own",
        SANDBOX_FIX
      )
    : check("browser", "warn", "Chromium does not start in its own sandbox, so browsing will fail", SANDBOX_FIX)
}

export const browserCheck = Effect.gen(function* () {
  const program = chromiumProgram()
  const isRoot = process.getuid?.() === 0
  if (program === undefined) return browserResult(program, undefined, isRoot)
  const home = yield* folder
  const command = [
    ...(isRoot ? AS_NOBODY : []),
    "env",
    `HOME=${home}`,
    program,
    ...FLAGS.split(" "),
    `--user-data-dir=${home}/profile`,
    "--dump-dom",
    "about:blank"
  ]
  const [first = "", ...args] = command
  const ran = yield* tryProgram(first, args)
  return browserResult(program, Option.getOrUndefined(ran)?.code, isRoot)
}).pipe(Effect.scoped)
