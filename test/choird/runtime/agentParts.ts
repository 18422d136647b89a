/** Like choir-agent.js, and with the agent's own tools for what a test asks: it is bundled and runs in a container. */
import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Arbitrary, Effect, Layer, ManagedRuntime } from "effect"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import type { Tool, ToolOutcome } from "#src/agent/tools/Tool.ts"
import { AgentSettings, type Settings } from "#src/agent/settings/AgentSettings.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { hostilePath } from "../../support/hostilePaths.ts"
import { startSwapper } from "../../support/swapper.ts"
import { laneThatSaw, OUTSIDE_TEXT } from "../../support/workspace.ts"

const ROOT = "/workspace"
const OUTSIDE = "/tmp/outside"
/** Of what an agent is told, all that its commands look at. */
const SETTINGS = { config: { approvals: { confirm_external: "never" } } } as Settings

const runtime = ManagedRuntime.make(
  Layer.mergeAll(
    Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root: ROOT }))),
    ProcessRunner.layer({ ownsPidNamespace: true }),
    GitAccess.layerNone,
    SecretStore.layer,
    Layer.succeed(AgentSettings, { current: () => SETTINGS } as AgentSettings["Service"])
  )
)

const seen: Record<string, string> = {}

/** One call of a tool, by a lane that remembers what it saw. An input that the tool refuses is no outcome. */
const call = Effect.fnUntraced(function* (tool: Tool, input: unknown) {
  const prepared = yield* Effect.option(tool.prepare(input))
  if (prepared._tag === "None") return undefined
  const outcome = yield* prepared.value.run(laneThatSaw(seen))
  for (const { path, sha256 } of outcome.reads ?? []) seen[path] = sha256
  for (const { path, after } of outcome.writes ?? []) seen[path] = after
  return outcome
})

const isInside = (path: string) => {
  const at = join(ROOT, path)
  return !existsSync(at) || realpathSync.native(at) === at
}

/** Why an outcome is one of the outside, if it is. */
const leakOf = (outcome: ToolOutcome | undefined): string | undefined => {
  if (outcome === undefined) return undefined
  const told = JSON.stringify(outcome.output ?? null)
  if (told.includes(OUTSIDE_TEXT) || told.includes("root:x:0:0")) return "it read what lies outside"
  const touched = [...(outcome.writes ?? []), ...(outcome.reads ?? [])].map(({ path }) => path)
  return touched.every(isInside) ? undefined : `it was at ${touched.join()}`
}

/** Writes to and reads from hostile paths by the tools, in a workspace with links to everywhere. */
const paths = Effect.fnUntraced(function* (runs: number, seed: number) {
  mkdirSync(OUTSIDE, { recursive: true })
  writeFileSync(join(OUTSIDE, "file"), OUTSIDE_TEXT)
  const links = { out: OUTSIDE, link: "/", proc: "/proc", root: "/proc/self/root", c: "/proc/self/cwd/.." }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(ROOT, name))
  const tools = { read: yield* fsRead, write: yield* fsWrite }
  const counts = { written: 0, read: 0, refused: 0, leaks: [] as Array<string> }
  const result = yield* Arbitrary.checkEffect(
    hostilePath,
    Effect.fnUntraced(function* (path) {
      const wrote = yield* call(tools.write, { path, content: "mark", mode: "overwrite" })
      const read = yield* call(tools.read, { path })
      counts[wrote?.status === "success" ? "written" : "refused"]++
      counts[read?.status === "success" ? "read" : "refused"]++
      const leak = leakOf(wrote) ?? leakOf(read)
      if (leak !== undefined) counts.leaks.push(`${JSON.stringify(path)}: ${leak}`)
      return leak === undefined
    }),
    { runs, seed }
  )
  return { ...counts, passed: result._tag === "Passed", outside: readFileSync(join(OUTSIDE, "file"), "utf8") }
})

let swapper: ReturnType<typeof startSwapper> | undefined

/** What the code that a test sends finds as `parts`. */
const parts = {
  paths: (runs: number, seed: number) => runtime.runPromise(paths(runs, seed)),
  /** Begins to swap `send` for links to a folder of the host. */
  race: (outside: string) => {
    mkdirSync(join(ROOT, "send"))
    writeFileSync(join(ROOT, "send/file"), "inside")
    swapper = startSwapper(ROOT, outside)
  },
  swaps: () => swapper?.count(),
  /** One call of choir.exec. */
  exec: (command: string, timeout_ms: number) =>
    runtime.runPromise(Effect.flatMap(exec, (tool) => call(tool, { command, timeout_ms })))
}
Object.assign(globalThis, { parts })
// @ts-expect-error It is no module with types, but a program.
await import("./choir-agent.js")
