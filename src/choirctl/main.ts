/** choirctl, the operator's command line. Node keeps what it compiled for the next call, which then starts in half the time. */
import { enableCompileCache } from "node:module"

// A folder of the user's own: in the shared one for temporary files others could leave code for this process.
const caches =
  process.env["XDG_CACHE_HOME"] ?? (process.env["HOME"] === undefined ? undefined : `${process.env["HOME"]}/.cache`)
if (caches !== undefined) enableCompileCache(`${caches}/choir`)

await import("./start.ts")
