/** choirctl, the operator's command line. Node keeps what it compiled for the next call, which then starts in half the time. */
import * as nodeModule from "node:module"
import { nodeTooOld } from "#src/shared/program/version.ts"

// Before anything else is loaded: an older Node would stop at the first thing that it lacks, without a word on why.
const tooOld = nodeTooOld(process.versions.node)
if (tooOld === undefined) {
  // A folder of the user's own: in the shared one for temporary files others could leave code for this process.
  const caches =
    process.env["XDG_CACHE_HOME"] ?? (process.env["HOME"] === undefined ? undefined : `${process.env["HOME"]}/.cache`)
  if (caches !== undefined) nodeModule.enableCompileCache(`${caches}/choir`)
  const { main } = await import("./run.ts")
  main(process.argv.slice(2))
} else {
  process.stderr.write(`error: ${tooOld}\n`)
  process.exitCode = 78
}
