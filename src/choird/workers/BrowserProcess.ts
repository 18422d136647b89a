/**
 * The process of one agent's browser (docs/web.md, The browser): Playwright, and Chromium below it, under a user of its own where choird is root. Whatever a
 * page makes them hold is theirs, and choird reads no more from it than a report may have.
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
import { rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { extname, join } from "node:path"
import { type ChildProcess, spawn } from "node:child_process"
import { Context, Effect, Schema, type Scope } from "effect"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { CHROMIUM_FIX, chromiumProgram } from "#src/shared/web/chromium.ts"
import { CgroupName, Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { HOST_PATH, signalGroup } from "#src/choird/runtime/HostProcess.ts"
import { SANDBOX_UID_COUNT, SANDBOX_UID_FIRST } from "#src/choird/runtime/Ownership.ts"

/** Where Chromium is, or `undefined`: looked up at each start, since it may be installed meanwhile. */
export const ChromiumProgram = Context.Reference<() => string | undefined>("choir/choird/ChromiumProgram", {
  defaultValue: () => () => chromiumProgram()
})

/** The browser's user where choird is root, beside those of sandboxes and of their trial. */
const BROWSER_UID = SANDBOX_UID_FIRST + SANDBOX_UID_COUNT + 1
/** One agent's browser, where choird may write control groups. */
const BROWSER_LIMITS = { cpus: 2, memory_mb: 1024, pids: 256 }
/** The heap of the process beside Chromium, everywhere: it holds what a page's tree has, and ends when that is too much. */
const DRIVER_HEAP_MB_MAX = 512

/** Further tries to remove a folder, each 100 ms later than the one before it. */
const REMOVALS_MAX = 10

/** There is no browser here, with what to do about it. */
export class BrowserUnavailable extends Schema.TaggedError<BrowserUnavailable>()("BrowserUnavailable", {
  problem: Schema.String,
  fix: Schema.String
}) {
  override get message() {
    return `the browser does not start: ${this.problem}. ${this.fix}`
  }
}

const isRoot = () => process.getuid?.() === 0

const unavailable = (problem: string, fix: string) => new BrowserUnavailable({ problem, fix })

export const SANDBOX_FIX =
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

/** Removes the folder of a browser that was killed, whose last processes may still be at work in it, while choird does its other work. */
export const removeFolder = (path: string): Effect.Effect<void> =>
  Effect.tryPromise(() => rm(path, { recursive: true, force: true, maxRetries: REMOVALS_MAX })).pipe(
    Effect.catch(({ cause }) => Effect.logWarning(`the folder ${path} of a browser was left behind: ${String(cause)}`))
  )

/** A folder of the browser's own, which goes with it. */
const folder = Effect.acquireRelease(
  Effect.try({
    try: () => {
      removeOld()
      const path = mkdtempSync(join(tmpdir(), `choir-browser-${process.pid}-`))
      chmodSync(path, 0o711)
      const home = join(path, "home")
      mkdirSync(join(path, "driver"), { mode: 0o700 })
      mkdirSync(home, { mode: 0o700 })
      if (isRoot()) chownSync(home, BROWSER_UID, BROWSER_UID)
      return { path, home }
    },
    catch: (cause) => unavailable(String(cause), "Make room on the disk of the temporary folder")
  }),
  ({ path }) => removeFolder(path)
)

/** The script that Playwright starts: it gives its rights away before it becomes Chromium. */
const startScript = (program: string, userHome: string, pidFile: string): string => {
  const drop = isRoot()
    ? `--reuid=${BROWSER_UID} --regid=${BROWSER_UID} --clear-groups --inh-caps=-all --bounding-set=-all`
    : ""
  const env = `env -i PATH=${HOST_PATH} HOME=${shellQuoted(userHome)} TMPDIR=${shellQuoted(userHome)} LANG=C.UTF-8`
  const profile = `--user-data-dir=${shellQuoted(join(userHome, "profile"))}`
  return [
    "#!/bin/sh",
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
    if (Number.isInteger(pid) && pid > 1) signalGroup(pid, "SIGKILL")
  } catch {
    // It did not start.
  }
}

/** Ends what a page or Chromium put into a process group of its own. */
const endMembers = (cgroups: Cgroups["Service"], name: CgroupName) =>
  Effect.ignore(
    Effect.map(cgroups.members(name), (pids) => {
      for (const pid of pids)
        try {
          process.kill(pid, "SIGKILL")
        } catch {
          // It has ended.
        }
    })
  )

let launches = 0

// A neighbour of this file from source and compiled, and of the bundle that holds this file.
const WORKER = join(import.meta.dirname, `browser-worker${extname(import.meta.url)}`)

/** A shell that joins the control groups and becomes the process, which dies with choird. */
const startProcess = (path: string, joins: ReadonlyArray<string>): ChildProcess => {
  const joining = joins.map((file) => `echo 0 >${shellQuoted(file)} || exit 125\n`).join("")
  const args = [`--max-old-space-size=${DRIVER_HEAP_MB_MAX}`, WORKER]
  const cache = process.env["NODE_COMPILE_CACHE"]
  return spawn("/bin/sh", ["-c", `${joining}exec setpriv --pdeathsig=KILL -- "$0" "$@"`, process.execPath, ...args], {
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
    env: {
      PATH: HOST_PATH,
      // Playwright asks for the user's folder, and a user id without a name has none.
      HOME: join(path, "driver"),
      TMPDIR: join(path, "driver"),
      ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache })
    }
  })
}

const kill = ({ pid }: ChildProcess) => {
  if (pid !== undefined) signalGroup(pid, "SIGKILL")
}

/** A process that waits for its first order, and the script with which it starts Chromium. */
export interface BrowserProcess {
  readonly child: ChildProcess
  readonly script: string
  /** Whether Chromium may run without its own sandbox: as a user that has nothing else. */
  readonly may_be_bare: boolean
}

/** Starts the process; it and everything below it end with the scope. */
export const startBrowserProcess: Effect.Effect<BrowserProcess, BrowserUnavailable, Cgroups | Scope.Scope> = Effect.gen(
  function* () {
    const program = (yield* ChromiumProgram)()
    if (program === undefined) return yield* unavailable("Chromium is not installed", CHROMIUM_FIX)
    const cgroups = yield* Cgroups
    const name = CgroupName.make(`choir-browser${process.pid}-${++launches}`)
    const { joins } = yield* Effect.mapError(cgroups.create(name, BROWSER_LIMITS), ({ message }) =>
      unavailable(message, "Look at the control groups of this host")
    )
    const { home, path } = yield* folder
    const script = join(path, "start")
    const pidFile = join(path, "pid")
    yield* Effect.sync(() => writeFileSync(script, startScript(program, home, pidFile), { mode: 0o700 }))
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => startProcess(path, joins)),
      (started) =>
        Effect.sync(() => {
          kill(started)
          endAll(pidFile)
        }).pipe(Effect.andThen(endMembers(cgroups, name)))
    )
    return { child, script, may_be_bare: isRoot() }
  }
)
