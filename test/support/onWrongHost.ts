/** Runs the built programs on hosts that are prepared wrongly (wrongHosts.ts). */
import { spawn } from "node:child_process"
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { CHOIRD_NODE_FLAGS } from "#src/choirctl/daemon/choirdProgram.ts"
import { BUNDLES } from "./bundles.ts"
import { MAIN } from "./choirctl.ts"
import { putDatabase } from "./engines.ts"
import { STRANGER, type WrongHost } from "./wrongHosts.ts"

/** How long a start may take on a machine that runs many tests; it ends or works in a thirtieth of it on a quiet one. */
export const HOST_START_MS_MAX = 60_000

/** How long a choird that works may take to end. */
const HOST_STOP_MS_MAX = 10_000

/** A home, and a folder that belongs to the host. */
interface Place {
  readonly home: string
  readonly work: string
}

/** How a program ended. */
export interface Ended {
  /** Undefined for a choird that works. */
  readonly code: number | string | undefined
  readonly output: string
  /** The processor's time of the program and of its programs, which does not depend on what else runs here; none for one that works. */
  readonly cpu_s: number | undefined
}

/** A home and a folder beside it, both gone with the scope. Its paths are those of a home that `choirctl init` made. */
export const makePlace = (template: string) =>
  Effect.gen(function* () {
    const work = yield* Effect.acquireRelease(
      Effect.sync(() => {
        // Where every user may go, which is not so of the disk of the other tests.
        const folder = mkdtempSync("/tmp/choir-host-")
        chmodSync(folder, 0o755)
        return folder
      }),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    const home = join(work, "home")
    cpSync(template, home, { recursive: true, preserveTimestamps: true })
    for (const name of ["config.json", "home.json"]) {
      const file = join(home, name)
      writeFileSync(file, readFileSync(file, "utf8").replaceAll(template, home))
    }
    rmSync(join(home, "data"), { recursive: true })
    yield* putDatabase(home)
    return { home, work }
  })

const READY = "choird ready in"

/** Runs a program on such a host until it takes commands or ends. */
const runOn = (host: WrongHost, place: Place, program: ReadonlyArray<string>) =>
  Effect.callback<Ended>((resume) => {
    const { args = ({ home }) => ["--home", home], env, prepare = "", unshare = [], user } = host
    const variables = { HOME: "/root", CHOIR_LOG: "stderr", ...env?.(place) }
    const set = Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
    const cache = process.env["NODE_COMPILE_CACHE"]
    const kept = [`PATH=${process.env["PATH"]}`, ...(cache === undefined ? [] : [`NODE_COMPILE_CACHE=${cache}`])]
    const as = user === undefined ? [] : ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--clear-groups"]
    const owner = user === undefined ? "" : `chown -R ${user}:${user} "$home"\n`
    const script = `set -e\n${owner}${prepare}\n${TIMED}`
    const line = ["--mount", ...(unshare.length === 0 ? [] : ["--fork", ...unshare]), "/bin/sh", "-c", script, "sh"]
    const child = spawn("unshare", [...line, ...as, "env", "-i", ...kept, ...set, ...program, ...args(place)], {
      env: { ...process.env, home: place.home, work: place.work, STRANGER: String(STRANGER) },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      // A group of its own, which is signalled whole: a change of the user takes away every other tie.
      detached: true
    })
    const closed = new Promise((resolve) => child.once("close", resolve))
    let output = ""
    let times = ""
    const stop = () => {
      signalGroup(child.pid, "SIGTERM")
      const killing = setTimeout(() => signalGroup(child.pid, "SIGKILL"), HOST_STOP_MS_MAX)
      void closed.then(() => clearTimeout(killing))
    }
    const keep = (part: Buffer) => {
      const before = output.includes(READY)
      output += part.toString()
      if (!before && output.includes(READY)) stop()
    }
    child.stdout?.on("data", keep)
    child.stderr?.on("data", keep)
    child.stdio[3]?.on("data", (part: Buffer) => (times += part.toString()))
    child.once("close", (code, signal) => {
      const works = output.includes(READY)
      const ended = works
        ? { code: undefined, cpu_s: undefined }
        : { code: code ?? signal ?? "unknown", cpu_s: cpuOf(times) }
      resume(Effect.succeed({ ...ended, output }))
    })
    return Effect.sync(() => signalGroup(child.pid, "SIGKILL"))
  }).pipe(
    Effect.timeoutOrElse({
      duration: HOST_START_MS_MAX + HOST_STOP_MS_MAX,
      orElse: () => Effect.die(new Error(`it neither works nor ends within ${HOST_START_MS_MAX / 1000} s`))
    })
  )

/** Runs a program to its end, and says on a pipe of its own how much of the processor's time it took. The signal that ends choird is not for the shell. */
const TIMED = `times >&3\ntrap : TERM\ncode=0\n"$@" 3>&- || code=$?\ntimes >&3\nexit $code`

/** The seconds of a shell's programs, in a line such as "0m0.310000s 0m0.080000s". */
const secondsIn = (line = ""): number =>
  [...line.matchAll(/(\d+)m([\d.]+)s/gu)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0
  )

/** Of each time that `times` was asked the second line is about programs. */
const cpuOf = (times: string): number => {
  const [, before, , after] = times.split("\n")
  return secondsIn(after) - secondsIn(before)
}

/** Starts choird there. */
export const startOn = (host: WrongHost, place: Place) =>
  runOn(host, place, [process.execPath, ...CHOIRD_NODE_FLAGS, join(BUNDLES, "choird.js")])

/** Asks choirctl doctor there, whose advice is then in the words of a start that is refused. */
export const doctorOn = (host: WrongHost, place: Place) =>
  Effect.map(runOn(host, place, [process.execPath, MAIN, "doctor"]), (ended) => ({
    ...ended,
    output: ended.output.replaceAll(/\n +fix: /gu, ". To fix it: ")
  }))

/** Signals whatever is left of a start. */
const signalGroup = (pid: number | undefined, signal: NodeJS.Signals) => {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // Nothing is.
  }
}
