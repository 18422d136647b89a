/** The programs that every container gets from this installation: Node, the agent's bundle and ripgrep. */
import { accessSync, constants, realpathSync } from "node:fs"
import { extname } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"

/** Real paths of this host. */
export interface AgentPrograms {
  readonly node: string
  readonly program: string
  readonly rg: string
}

/** This installation is not whole. */
export class ProgramMissing extends Schema.TaggedError<ProgramMissing>()("ProgramMissing", {
  program: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return `${this.program} is missing: ${this.hint}`
  }
}

// From source the bundle is where the build puts it; bundled, it lies beside choird's own.
const fromSource = extname(import.meta.url) === ".ts"
const BUNDLE = fileURLToPath(new URL(fromSource ? "../../../dist/choir-agent.js" : "./choir-agent.js", import.meta.url))

const readable = (path: string, hint: string) =>
  Effect.try({
    try: () => {
      accessSync(path, constants.R_OK)
      return realpathSync(path)
    },
    catch: () => new ProgramMissing({ program: path, hint })
  })

/** Looked up anew at each start of an agent, since a build may come between. */
export const agentPrograms: Effect.Effect<AgentPrograms, ProgramMissing> = Effect.gen(function* () {
  const { rgPath } = yield* Effect.tryPromise({
    try: () => import("@vscode/ripgrep"),
    catch: () => new ProgramMissing({ program: "ripgrep", hint: "install Choir again, with its optional dependencies" })
  })
  return {
    node: realpathSync(process.execPath),
    program: yield* readable(BUNDLE, "npm run build"),
    rg: yield* readable(rgPath, "install Choir again, with its optional dependencies")
  }
})
