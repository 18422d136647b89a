/** The checks of `choirctl doctor`, each independent and each by really trying. */
import { accessSync, constants, lstatSync, realpathSync, statSync, type StatsFs } from "node:fs"
import { statfs } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Effect, Option, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import type { Config } from "#schema/Config.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { countsFiles, DISK_FIX, diskLimit, fileLimit } from "#src/shared/config/diskLimit.ts"
import { initHint } from "#src/shared/files/homeFolder.ts"
import { homePlacement, placementFix, placementProblem } from "#src/shared/files/homeRecord.ts"
import {
  clockProblem,
  fileSizeProblem,
  flockProblem,
  type HostProblem,
  homeWriteProblem,
  longHomeProblem,
  noexecProblem,
  openFilesProblem,
  procProblem,
  temporaryProblem,
  timeZoneProblem
} from "#src/shared/files/hostProblems.ts"
import { hasFixes, LAST_LOOKED, NODE_RELEASE } from "#src/shared/program/securityReleases.ts"
import { NODE_RELEASES } from "#src/shared/program/version.ts"
import { readAuthorities } from "#src/shared/config/authorities.ts"
import { PROXY_LIMITS, proxiesOf, proxyProblems } from "#src/shared/wire/proxies.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { plural } from "#src/shared/text/counts.ts"
import { tryPostgres } from "./postgresCheck.ts"

/** One check of `choirctl doctor`. */
export const DOCTOR_CHECK_MS_MAX = 10_000

/** A check's result and what to do about it. What is not configured is skipped. */
export interface Check {
  readonly name: string
  readonly status: "ok" | "warn" | "fail" | "skip"
  readonly detail: string
  readonly fix?: string
}

export const check = (name: string, status: Check["status"], detail: string, fix?: string): Check =>
  fix === undefined ? { name, status, detail } : { name, status, detail, fix }

export const nodeCheck = (version: string): Check =>
  hasFixes(NODE_RELEASE, version)
    ? check("node", "ok", `${version}, with the security releases that were known on ${LAST_LOOKED}`)
    : check(
        "node",
        "fail",
        `${version} lacks the security release of ${NODE_RELEASE.date} (${NODE_RELEASE.holes})`,
        `npm ci in a checkout of Choir brings a safe one; or install ${NODE_RELEASES}`
      )

export const homeCheck = (home: string): Effect.Effect<Check> =>
  Effect.sync(() => {
    const stat = lstatSync(home, { throwIfNoEntry: false })
    if (stat === undefined) return check("home", "fail", `${home} does not exist`, initHint(home))
    if (stat.isSymbolicLink())
      return check("home", "fail", `${home} is a symbolic link`, "name the folder that it leads to")
    const mode = stat.mode & 0o777
    const unwritable = homeWriteProblem(realpathSync(home))
    if (unwritable !== undefined) return check("home", "fail", unwritable.problem, unwritable.fix)
    return stat.isDirectory() && mode === 0o700
      ? check("home", "ok", home)
      : check(
          "home",
          "fail",
          `${home} has mode ${mode.toString(8)}, but must be a folder with mode 700`,
          `chmod 700 ${home}`
        )
  }).pipe(
    Effect.catchDefect((defect) => Effect.succeed(check("home", "fail", String(defect), "choose another --home")))
  )

/** A check of what choird needs of its host, which is said only where it is missing, but for a first word that all is there. */
export const hostChecks = Effect.fnUntraced(function* (home: string) {
  const refusals = [
    procProblem(),
    flockProblem(),
    openFilesProblem(),
    fileSizeProblem(),
    temporaryProblem(),
    clockProblem(yield* Clock.currentTimeMillis)
  ]
  const there = statSync(home, { throwIfNoEntry: false }) !== undefined
  const real = there ? realpathSync(home) : home
  const warnings = [timeZoneProblem(), ...(there ? [noexecProblem(join(real, "images"))] : [])]
  const lines = (status: "fail" | "warn", found: ReadonlyArray<HostProblem | undefined>) =>
    found.flatMap((each) => (each === undefined ? [] : [check(each.name, status, each.problem, each.fix)]))
  const found = [...lines("fail", [...refusals, longHomeProblem(real)]), ...lines("warn", warnings)]
  return found.length > 0 ? found : [check("host", "ok", "temporary files, programs, open files, clock and time zone")]
})

/** The authorities and proxies that this host names, and what does not go through a proxy. */
export const wayOutChecks = (tls: Config["tls"]): ReadonlyArray<Check> => {
  const { problems, text } = readAuthorities(tls)
  const proxies = proxiesOf(process.env)
  const odd = proxyProblems(proxies)
  const isProxied = proxies.http !== undefined || proxies.https !== undefined
  return [
    ...problems.map(({ fix, problem }) => check("authorities", "fail", problem, fix)),
    ...(text === undefined || problems.length > 0
      ? []
      : [check("authorities", "ok", "private ones are trusted by choird, agents and choirctl")]),
    ...odd.map((problem) => check("proxy", "fail", problem, "write it as http://HOST:PORT, or take it out")),
    ...(isProxied && odd.length === 0 ? [check("proxy", "warn", PROXY_LIMITS, "open those ways, or do without")] : [])
  ]
}

/** Whether a home stands where it last ran. */
export const placeCheck = (home: string): ReadonlyArray<Check> => {
  const real = realpathSync(home)
  const placement = homePlacement(real)
  const problem = placementProblem(real, placement)
  return problem === undefined ? [] : [check("place", "fail", problem, placementFix(placement))]
}

export interface Ran {
  readonly code: number
  readonly text: string
}

/** Runs a program to its end; `undefined` when it cannot be started or does not end in time. */
export const tryProgram = Effect.fnUntraced(function* (program: string, args: ReadonlyArray<string>) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const run = Effect.gen(function* () {
    const child = yield* spawner.spawn(ChildProcess.make(program, args, { stdin: "ignore", killSignal: "SIGKILL" }))
    const text = child.all.pipe(Stream.decodeText(), Stream.mkString)
    const [code, output] = yield* Effect.all([child.exitCode, text], { concurrency: 2 })
    return { code, text: output.trim() } satisfies Ran
  })
  return yield* run.pipe(Effect.scoped, Effect.timeout(DOCTOR_CHECK_MS_MAX), Effect.option)
})

const firstLine = (text: string) => text.split("\n", 1)[0] ?? ""

/** From here on `-c safe.directory` counts, by which choird reads repositories of other owners. */
const GIT_MIN = [2, 38] as const

/** @param text the output of `git --version`, if it ran. */
export const gitVersionCheck = (text: string | undefined): Check => {
  if (text === undefined)
    return check("git", "fail", "git was not found", "install git, in Debian: apt-get install git")
  const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/u.exec(text) ?? []
  const works = Number(major) > GIT_MIN[0] || (Number(major) === GIT_MIN[0] && Number(minor) >= GIT_MIN[1])
  return works
    ? check("git", "ok", firstLine(text))
    : check("git", "warn", `${firstLine(text)} is old`, `install git ${GIT_MIN.join(".")} or later`)
}

export const gitCheck = Effect.map(tryProgram("git", ["--version"]), (ran) =>
  gitVersionCheck(Option.exists(ran, ({ code }) => code === 0) ? Option.getOrThrow(ran).text : undefined)
)

/** The search tool of agents comes with this package. */
export const ripgrepCheck = Effect.tryPromise(async () => {
  const { rgPath } = await import("@vscode/ripgrep")
  accessSync(rgPath, constants.X_OK)
  return rgPath
}).pipe(
  Effect.match({
    onSuccess: (path) => check("ripgrep", "ok", path),
    onFailure: () =>
      check(
        "ripgrep",
        "fail",
        "not installed, so agents cannot search files",
        "install Choir again, with its optional dependencies"
      )
  })
)

/** A sandbox that holds nothing but a view of this host. Root starts it as choird does: under an unprivileged uid. */
const NAMESPACES = "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --die-with-parent"
const VIEW = "--ro-bind / / --proc /proc --dev /dev --chdir / /usr/bin/true"
const SANDBOX = `bwrap ${NAMESPACES} ${VIEW}`.split(" ")
export const AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

/** The fix for an error that bubblewrap prints. */
export const sandboxFix = (text: string): string =>
  /namespace|uid map|Operation not permitted|Permission denied/u.test(text)
    ? "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    : "install bubblewrap 0.8 or later, in Debian: apt-get install bubblewrap util-linux"

const NOT_INSTALLED = "bubblewrap is not installed"

/** Whether sandboxes work here, or why not. */
export const trySandbox = Effect.gen(function* () {
  const [program = "", ...args] = process.getuid?.() === 0 ? [...AS_NOBODY, ...SANDBOX] : SANDBOX
  const ran = yield* tryProgram(program, args)
  return Option.match(ran, {
    onNone: () => NOT_INSTALLED,
    onSome: ({ code, text }) => {
      if (code === 0) return undefined
      if (/failed to execute bwrap/u.test(text)) return NOT_INSTALLED
      return firstLine(text) || `it exited with code ${code}`
    }
  })
})

/** The runtime that choird would take, from what works here and what config.json says; each `undefined` is one that works. */
export const runtimeCheck = (
  wanted: Config["runtime"]["type"],
  sandbox: string | undefined,
  docker: string | undefined
): Check => {
  if (wanted === "process")
    return check("runtime", "warn", "process, which does not isolate agents", "set runtime.type to auto in config.json")
  if (docker === undefined && wanted !== "sandbox") return check("runtime", "ok", "docker")
  if (wanted === "docker") return check("runtime", "fail", docker ?? "", "set runtime.type to auto in config.json")
  return sandbox === undefined
    ? check("runtime", "ok", wanted === "auto" ? `sandbox, since ${docker}` : "sandbox")
    : check("runtime", "fail", `bubblewrap does not work: ${sandbox}`, sandboxFix(sandbox))
}

export const sandboxCheck = (problem: string | undefined): Check =>
  problem === undefined
    ? check("bubblewrap", "ok", "a sandbox was started")
    : check("bubblewrap", "warn", problem, sandboxFix(problem))

/** Below this share above its limit the disk is said to fill up. */
const DISK_WARN_FACTOR = 1.5

/** Something of a disk that may run out: in words how much is free, and below which limit choird pauses agents. */
interface Room {
  readonly free: number
  readonly limit: number
  readonly words: (amount: number) => string
}

type Disk = Pick<StatsFs, "bavail" | "blocks" | "bsize" | "ffree" | "files">

const roomOf = ({ bavail, blocks, bsize, ffree, files }: Disk, retention: Config["retention"]): ReadonlyArray<Room> => [
  { free: bavail * bsize, limit: diskLimit(retention, blocks * bsize), words: bytesText },
  ...(countsFiles({ ffree, files })
    ? [{ free: ffree, limit: fileLimit(retention, files), words: (count: number) => plural(count, "file") }]
    : [])
]

/** The free space of the home's disk, against the limits below which choird pauses agents. */
export const spaceCheck = (home: string, disk: Disk, retention: Config["retention"]): Check => {
  const rooms = roomOf(disk, retention)
  const scarce = (factor: number) => rooms.filter(({ free, limit }) => free < limit * factor)
  const detail = (some: ReadonlyArray<Room>) =>
    some
      .map(
        ({ free, limit, words }) =>
          `${words(free)} free on the disk of ${home}; agents are paused below ${words(limit)}`
      )
      .join("; ")
  if (scarce(1).length > 0) return check("disk", "fail", detail(scarce(1)), DISK_FIX)
  return scarce(DISK_WARN_FACTOR).length > 0
    ? check(
        "disk",
        "warn",
        detail(scarce(DISK_WARN_FACTOR)),
        "free space soon; choirctl prune --dry-run shows what Choir can remove"
      )
    : check("disk", "ok", `${bytesText(disk.bavail * disk.bsize)} free`)
}

export const diskCheck = (home: string, retention: Config["retention"]): Effect.Effect<Check> =>
  Effect.tryPromise(() => statfs(home)).pipe(
    Effect.match({
      onFailure: () => check("disk", "warn", `the free space of ${home} is not known`),
      onSuccess: (disk) => spaceCheck(home, disk, retention)
    })
  )

/** A server of config.json is asked for its version and for pgvector. */
const serverCheck = (server: Exclude<Config["postgres"], { readonly embedded: true }>, secrets: SecretsFile) =>
  Effect.map(tryPostgres(server, secrets, DOCTOR_CHECK_MS_MAX), ({ facts, fix, problem }) =>
    problem === undefined ? check("postgres", "ok", facts) : check("postgres", "fail", problem, fix)
  )

/** The embedded database is opened by choird alone; here only its parts are looked for. */
const embeddedCheck = Effect.try(() => import.meta.resolve("@electric-sql/pglite")).pipe(
  Effect.match({
    onSuccess: () => check("postgres", "ok", "embedded, for evaluation and single-user machines"),
    onFailure: () => check("postgres", "fail", "the embedded database is not installed", "install Choir again")
  })
)

export const postgresCheck = (config: Config, secrets: SecretsFile) =>
  "embedded" in config.postgres ? embeddedCheck : serverCheck(config.postgres, secrets)
