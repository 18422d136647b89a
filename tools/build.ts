/**
 * `npm run build`: bundles the programs into `dist/` and makes the database template beside them, or does nothing when `dist/`
 * holds just that. The files are made in a folder of their own and moved into place at the end.
 * `node tools/build.ts [--force] [--quiet]`; quiet prints only when it builds.
 */
import { spawn } from "node:child_process"
import { mkdirSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { parseArgs } from "node:util"
import {
  digestFiles,
  filesAt,
  hasTemplate,
  inputsOf,
  isBuilt,
  readStamp,
  STAMP,
  TEMPLATE,
  templateInputsOf,
  writeStamp
} from "./BuildStamp.ts"
import { lockBuild } from "./buildLock.ts"

/** How long a first build takes on two cores, for its message. */
const USUAL_SECONDS = 20

// No alias is imported here: only what Node has in itself loads fast enough for a build that has nothing to do.
const ROOT = join(import.meta.dirname, "..")
const DIST = join(ROOT, "dist")
const UNFINISHED = join(DIST, "unfinished")

/** A tool of the build failed; the message ends with what it printed. */
class StepFailed extends Error {}

const say = (text: string) => void process.stderr.write(`${text}\n`)

/** Runs one tool and keeps what it prints for the case that it fails. */
const step = (name: string, args: ReadonlyArray<string>, signal: AbortSignal, env: NodeJS.ProcessEnv = {}) =>
  new Promise<void>((resolve, reject) => {
    let output = ""
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      signal,
      stdio: ["ignore", "pipe", "pipe"]
    })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (output += text))
    child.once("error", reject)
    child.once("close", (code, killed) => {
      if (code === 0) return resolve()
      reject(new StepFailed(`${name} failed (${killed ?? `exit code ${code}`}):\n${output.trim()}`))
    })
  })

const bundle = async (folder: string, signal: AbortSignal) => {
  const rolldown = join(ROOT, "node_modules/.bin/rolldown")
  await step("rolldown", [rolldown, "-c", "rolldown.config.ts"], signal, { CHOIR_DIST: folder })
  await step("compiling the agent", ["tools/compileAgent.ts", join(folder, "choir-agent.js")], signal)
}

const makeTemplate = async (folder: string, signal: AbortSignal) => {
  const file = join(folder, TEMPLATE)
  await step("the database template", ["src/choird/database/postgres-template.ts", file], signal)
}

/** Runs the parts side by side; the first that fails ends the others. */
const together = async (parts: ReadonlyArray<(signal: AbortSignal) => Promise<void>>) => {
  const failed = new AbortController()
  const running = parts.map(async (part) => {
    try {
      await part(failed.signal)
    } catch (error) {
      if (!failed.signal.aborted) failed.abort(error)
    }
  })
  await Promise.all(running)
  failed.signal.throwIfAborted()
}

/** Moves what was made to its place. The stamp is away meanwhile, so that a mixture never counts as built. */
const publish = (folder: string, files: ReadonlyArray<string>) => {
  const old = Object.keys(readStamp(DIST)?.files ?? {})
  rmSync(join(DIST, STAMP), { force: true })
  for (const path of files) {
    mkdirSync(dirname(join(DIST, path)), { recursive: true })
    renameSync(join(folder, path), join(DIST, path))
  }
  const kept = new Set([...files, TEMPLATE])
  for (const path of old) if (!kept.has(path)) rmSync(join(DIST, path), { force: true })
}

const build = async (inputs: string, force: boolean) => {
  const started = performance.now()
  const template_inputs = templateInputsOf(ROOT)
  const keepsTemplate = !force && hasTemplate(DIST, template_inputs)
  say(`building (about ${readStamp(DIST)?.seconds ?? USUAL_SECONDS} s)…`)
  rmSync(UNFINISHED, { recursive: true, force: true })
  // A tool that outlives a killed build writes on into the folder of that build.
  const folder = join(UNFINISHED, String(process.pid))
  mkdirSync(folder, { recursive: true })
  try {
    await together([
      (signal) => bundle(folder, signal),
      ...(keepsTemplate ? [] : [(signal: AbortSignal) => makeTemplate(folder, signal)])
    ])
    const made = filesAt(folder, "")
    const files = digestFiles(folder, made)
    const template = keepsTemplate ? digestFiles(DIST, [TEMPLATE]) : {}
    publish(folder, made)
    const seconds = Math.ceil((performance.now() - started) / 1000)
    writeStamp(DIST, { inputs, template_inputs, files: { ...files, ...template }, seconds })
  } finally {
    rmSync(UNFINISHED, { recursive: true, force: true })
  }
  say(`built in ${((performance.now() - started) / 1000).toFixed(1)} s`)
}

const main = async () => {
  const { values } = parseArgs({ options: { force: { type: "boolean" }, quiet: { type: "boolean" } } })
  const force = values.force === true
  const upToDate = () => !force && isBuilt(DIST, inputsOf(ROOT))
  const tellUpToDate = () => (values.quiet === true ? undefined : say("dist/ is up to date; --force builds anyway"))
  if (upToDate()) return tellUpToDate()
  await lockBuild(ROOT, (pid) => say(`waiting for the build in process ${pid}…`))
  // Another build may have done the work meanwhile.
  if (upToDate()) return tellUpToDate()
  await build(inputsOf(ROOT), force)
}

try {
  await main()
} catch (error) {
  say(`error: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
