/**
 * Chromium as a child of choird (docs/web.md, The browser): under a user of its own where choird is root, with Chromium's sandbox, and with no way
 * to any network but the proxy.
 */
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema, type Scope } from "effect"
import type { Browser } from "playwright-core"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { CHROMIUM_FIX, chromiumProgram } from "#src/shared/web/chromium.ts"
import { CgroupName, Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { HOST_PATH } from "#src/choird/runtime/HostProcess.ts"
import { SANDBOX_UID_COUNT, SANDBOX_UID_FIRST } from "#src/choird/runtime/Ownership.ts"

/** The browser's user where choird is root, beside those of sandboxes and of their trial. */
const BROWSER_UID = SANDBOX_UID_FIRST + SANDBOX_UID_COUNT + 1
/** From the start of Chromium until it answers, on a machine that is busy. */
const LAUNCH_MS_MAX = 60_000
/** Closing Chromium in its own way, before it is killed. */
const CLOSE_MS_MAX = 3000
/** All of Chromium, where choird may write control groups. */
const BROWSER_LIMITS = { cpus: 2, memory_mb: 2048, pids: 512 }
/** The JavaScript heap of one page, everywhere. */
const PAGE_HEAP_MB_MAX = 512

/** There is no browser here, with what to do about it. */
export class BrowserUnavailable extends Schema.TaggedError<BrowserUnavailable>()("BrowserUnavailable", {
  problem: Schema.String,
  fix: Schema.String
}) {
  override get message() {
    return `the browser does not start: ${this.problem}. ${this.fix}`
  }
}

/** Beside those of Playwright: no network but the proxy, nothing of Chromium's own on it, and no graphics. */
const FLAGS = [
  "--disable-quic",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  // Names are the proxy's to ask for, and nothing else's.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  `--js-flags=--max-old-space-size=${PAGE_HEAP_MB_MAX}`
]

const isRoot = () => process.getuid?.() === 0

const unavailable = (problem: string, fix: string) => new BrowserUnavailable({ problem, fix })

const SANDBOX_FIX =
  "Allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return codeOf(cause) !== "ESRCH"
  }
}

/** Removes the folders of a choird that was killed. */
const removeOld = () => {
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(/^choir-browser-(\d{1,10})-\w+$/u.exec(name)?.[1])
    const path = join(tmpdir(), name)
    if (pid > 0 && !isAlive(pid) && lstatSync(path).uid === process.getuid?.())
      rmSync(path, { recursive: true, force: true })
  }
}

/** A folder of the browser's own, which goes with it. */
const folder = Effect.acquireRelease(
  Effect.try({
    try: () => {
      removeOld()
      const path = mkdtempSync(join(tmpdir(), `choir-browser-${process.pid}-`))
      chmodSync(path, 0o711)
      const home = join(path, "home")
      mkdirSync(home, { mode: 0o700 })
      if (isRoot()) chownSync(home, BROWSER_UID, BROWSER_UID)
      return { path, home }
    },
    catch: (cause) => unavailable(String(cause), "Make room on the disk of the temporary folder")
  }),
  ({ path }) => Effect.ignore(Effect.try(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 })))
)

/** The script that Playwright starts: it joins the control groups and gives its rights away before it becomes Chromium. */
const startScript = (program: string, userHome: string, pidFile: string, joins: ReadonlyArray<string>): string => {
  const drop = isRoot()
    ? `--reuid=${BROWSER_UID} --regid=${BROWSER_UID} --clear-groups --inh-caps=-all --bounding-set=-all`
    : ""
  const env = `env -i PATH=${HOST_PATH} HOME=${shellQuoted(userHome)} TMPDIR=${shellQuoted(userHome)} LANG=C.UTF-8`
  const profile = `--user-data-dir=${shellQuoted(join(userHome, "profile"))}`
  return [
    "#!/bin/sh",
    ...joins.map((file) => `echo 0 >${shellQuoted(file)} || exit 125`),
    "umask 077",
    `echo $$ >${shellQuoted(pidFile)}`,
    `exec setpriv ${drop} --no-new-privs --pdeathsig=KILL -- ${env} ${shellQuoted(program)} "$@" ${profile}`,
    ""
  ].join("\n")
}

/** Ends the browser's process group, whatever its pages are doing. */
const endAll = (pidFile: string) => {
  try {
    const pid = Number(readFileSync(pidFile, "utf8"))
    if (Number.isInteger(pid) && pid > 1) process.kill(-pid, "SIGKILL")
  } catch {
    // It did not start, or has ended by itself.
  }
}

let launches = 0

const start = (executablePath: string, proxy: string, chromiumSandbox: boolean) =>
  Effect.tryPromise({
    try: async () => {
      const { chromium } = await import("playwright-core")
      return await chromium.launch({
        executablePath,
        chromiumSandbox,
        headless: true,
        args: FLAGS,
        // What belongs to no agent has no token, and gets nothing. `<-loopback>` sends loopback here as well.
        proxy: { server: proxy, bypass: "<-loopback>" },
        env: { PATH: HOST_PATH },
        handleSIGHUP: false,
        handleSIGINT: false,
        handleSIGTERM: false,
        timeout: LAUNCH_MS_MAX
      })
    },
    catch: (cause) => unavailable(String(cause).split("\n", 1)[0] ?? "", SANDBOX_FIX)
  })

export interface RunningChromium {
  readonly browser: Browser
  /** Whether Chromium's own sandbox is around its pages. */
  readonly isSandboxed: boolean
}

/** Starts Chromium, and ends it with the scope. Without its sandbox it runs only as a user that has nothing else. */
export const launchChromium = Effect.fn("Chromium.launch")(function* (
  proxy: string
): Effect.fn.Return<RunningChromium, BrowserUnavailable, Cgroups | Scope.Scope> {
  const program = chromiumProgram()
  if (program === undefined) return yield* unavailable("Chromium is not installed", CHROMIUM_FIX)
  const cgroups = yield* Cgroups
  const name = CgroupName.make(`choir-browser${process.pid}-${++launches}`)
  const { joins } = yield* Effect.mapError(cgroups.create(name, BROWSER_LIMITS), ({ message }) =>
    unavailable(message, "Look at the control groups of this host")
  )
  const { home, path } = yield* folder
  const script = join(path, "start")
  yield* Effect.sync(() => writeFileSync(script, startScript(program, home, join(path, "pid"), joins), { mode: 0o700 }))
  yield* Effect.addFinalizer(() => Effect.sync(() => endAll(join(path, "pid"))))
  const close = ({ browser }: RunningChromium) =>
    Effect.ignore(
      Effect.timeout(
        Effect.tryPromise(() => browser.close()),
        CLOSE_MS_MAX
      )
    )
  const sandboxed = Effect.map(start(script, proxy, true), (browser) => ({ browser, isSandboxed: true }))
  const bare = Effect.map(start(script, proxy, false), (browser) => ({ browser, isSandboxed: false }))
  const running = yield* Effect.acquireRelease(isRoot() ? Effect.catch(sandboxed, () => bare) : sandboxed, close)
  if (!running.isSandboxed)
    yield* Effect.logWarning(`Chromium runs without its own sandbox, as uid ${BROWSER_UID}. ${SANDBOX_FIX}`)
  return running
})
