/** `npm run mutate`: breaks one line at a time in the parts that carry promises, and names the changes that no nearby test notices. */
import { execFileSync, spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { programOptions } from "../support/programOptions.ts"
import { seeded } from "../support/seeded.ts"
import { type Change, changed, changesOf } from "./changes.ts"

const ROOT = join(import.meta.dirname, "../..")

/** The arbiter, the fold, the chain, choird's side of an append, locks, budget, replication, queues, paths and approvals. */
const FILES = [
  "src/agent/arbiter/Arbiter.ts",
  "src/agent/arbiter/EventLog.ts",
  "src/agent/arbiter/decide.ts",
  "src/agent/arbiter/decideCalls.ts",
  "src/agent/arbiter/decideCores.ts",
  "src/agent/arbiter/decideSkills.ts",
  "src/agent/arbiter/decideStop.ts",
  "src/agent/calls/Confirmations.ts",
  "src/agent/calls/LockManager.ts",
  "src/agent/calls/grantedCall.ts",
  "src/agent/calls/locks.ts",
  "src/agent/control/Replication.ts",
  "src/agent/model/Budget.ts",
  "src/agent/workspace/Workspace.ts",
  "src/agent/workspace/workspaceFiles.ts",
  "src/choird/approvals/Approvals.ts",
  "src/choird/approvals/approvalStatus.ts",
  "src/choird/approvals/settleApproval.ts",
  "src/choird/queues/Inbox.ts",
  "src/choird/queues/Outbox.ts",
  "src/choird/sessions/appendPatches.ts",
  "src/choird/sessions/decideAppend.ts",
  "src/choird/sessions/snapshots.ts",
  "src/shared/events/hashChain.ts",
  "src/shared/image/workspacePath.ts",
  "src/shared/session/calls.ts",
  "src/shared/session/fold.ts"
]

const USAGE = `npm run mutate -- [options]
Changes one line at a time in a copy of the repository, runs the nearby tests (those that import the file or, where none does, the
files that import it), and names each change that none of them notices. Nothing in the repository is changed.
  --only FILE    one file alone, by its path; any file of src/
  --limit N      how many changes (20)
  --seed N       which of all changes (1)
  --line N       with --only: the changes of one line
The last line counts. A survivor is a hole in the tests, or a change that means the same.`

const { positive, values } = programOptions(USAGE, {
  only: { type: "string" },
  limit: { type: "string", default: "20" },
  seed: { type: "string", default: "1" },
  line: { type: "string" }
})
const limit = positive("limit", values.limit)
const line = values.line === undefined ? undefined : positive("line", values.line)
const draw = seeded(positive("seed", values.seed))

/** A change may make its tests wait for ever, which counts as noticed. */
const TESTS_MS_MAX = 300_000

const files = values.only === undefined ? FILES : [values.only]
const missing = files.find((file) => !existsSync(join(ROOT, file)))
if (missing !== undefined) {
  process.stderr.write(`there is no file ${missing}\n`)
  process.exit(2)
}

const git = (...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", ROOT, ...args], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })

/** The files of the work tree, without what git ignores, in a folder of their own. */
const copyRepository = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "choir-mutate-"))
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
  for (const name of git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")) {
    if (name === "" || !existsSync(join(ROOT, name))) continue
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    cpSync(join(ROOT, name), join(folder, name), { verbatimSymlinks: true })
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"))
  writeFileSync(
    join(folder, "mutate.config.mjs"),
    `export default { test: { include: ["test/**/*.test.ts"], globalSetup: ["test/support/database-setup.ts"], maxWorkers: 2, isolate: false, bail: 1, testTimeout: 60_000 } }\n`
  )
  return folder
}

const TESTS = git("ls-files", "--cached", "--others", "--exclude-standard", "test")
  .split("\n")
  .filter((name) => name.endsWith(".test.ts"))

/** How far the search for a test goes up from a file that no test imports. */
const IMPORTERS_DEPTH_MAX = 2

/** Whole processes are tested by their bundles, which are not built again for a change. */
const WHOLE = /^test\/(?:e2e|chaos|simulation|siege|docs|library|tools|demo|mutate)\//u

const SOURCES = git("ls-files", "--cached", "src")
  .split("\n")
  .filter((name) => name.endsWith(".ts"))

const imports = (name: string, file: string): boolean => {
  const text = readFileSync(join(ROOT, name), "utf8")
  const path = relative(dirname(name), file)
  return text.includes(`"#${file}"`) || text.includes(`"${path.startsWith(".") ? path : `./${path}`}"`)
}

/** The tests that import a file, and the one that has its name; where there are none, those near the files that import it. */
const testsNear = (file: string, depth = 0): ReadonlyArray<string> => {
  const mirror = file.replace(/^src\//u, "test/").replace(/\.ts$/u, ".test.ts")
  const near = TESTS.filter((name) => name === mirror || (!WHOLE.test(name) && imports(name, file)))
  if (near.length > 0 || depth === IMPORTERS_DEPTH_MAX) return near
  const importers = SOURCES.filter((name) => imports(name, file))
  return [...new Set(importers.flatMap((name) => testsNear(name, depth + 1)))]
}

let running: ReturnType<typeof spawn> | undefined
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => {
    running?.kill("SIGKILL")
    process.exit(130)
  })

/** Whether tests pass. */
const pass = (folder: string, tests: ReadonlyArray<string>): Promise<boolean> =>
  new Promise((resolve) => {
    const args = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--config", "mutate.config.mjs", ...tests]
    const child = spawn(process.execPath, args, { cwd: folder, stdio: "ignore", timeout: TESTS_MS_MAX })
    running = child
    child.once("exit", (code) => resolve(code === 0))
  })

/** So many of a list, drawn without repetition. */
const drawn = <A>(all: ReadonlyArray<A>, count: number): ReadonlyArray<A> => {
  const left = [...all]
  return Array.from({ length: Math.min(count, all.length) }, () => left.splice(draw(left.length), 1)).flat()
}

const folder = copyRepository()
const texts = new Map(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]))
const all = [...texts].flatMap(([file, text]) => changesOf(file, text))
const chosen = drawn(
  all.filter((change) => line === undefined || change.line === line),
  limit
)
const tally = { killed: 0, survived: 0, untested: 0 }
const print = (text: string) => process.stdout.write(`${text}\n`)

/** Whether the tests near a file pass without a change; asked once for each file. */
const sound = new Map<string, Promise<boolean>>()

const tryOut = async (change: Change): Promise<void> => {
  const { after, before, file } = change
  const tests = testsNear(file)
  const where = `${file}:${change.line}`
  if (tests.length > 0 && !sound.has(file)) sound.set(file, pass(folder, tests))
  if (tests.length === 0 || !(await sound.get(file))) {
    tally.untested++
    print(`untested  ${where}: ${tests.length === 0 ? "no test imports it" : "its tests fail without a change"}`)
    return
  }
  const text = texts.get(file) ?? ""
  writeFileSync(join(folder, file), changed(text, change))
  const survived = await pass(folder, tests)
  writeFileSync(join(folder, file), text)
  tally[survived ? "survived" : "killed"]++
  print(`${survived ? "SURVIVED" : "killed  "}  ${where}: ${before.trim()} → ${after.trim() || "(nothing)"}`)
}

print(`${all.length} changes in ${files.length} files, of which ${chosen.length} are tried, seed ${values.seed}`)
for (const change of chosen) await tryOut(change)
print(`${tally.killed} killed, ${tally.survived} survived, ${tally.untested} without a test`)
