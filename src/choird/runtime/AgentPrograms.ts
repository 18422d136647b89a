/** The programs that every container gets from this installation: Node, the agent's bundle and ripgrep. */
import { accessSync, constants, existsSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { CACHE, CODE, OFFLINE } from "#src/shared/program/compiledProgram.ts"

/**
 * `cache` is the code as V8 compiled it, `vocabulary` what tokens are counted by, and `offline` runs commands without a network; an agent
 * does without each of them.
 */
const SUFFIXES = { code: CODE, cache: CACHE, vocabulary: ".o200k", offline: OFFLINE } as const

export type ProgramPart = keyof typeof SUFFIXES

export const PROGRAM_PARTS = Object.keys(SUFFIXES) as ReadonlyArray<ProgramPart>

export const partOf = (program: string, part: ProgramPart): string => program.replace(/\.js$/u, SUFFIXES[part])

/** Those that are there, by their names. */
export const partsOf = (program: string): Readonly<Partial<Record<ProgramPart, string>>> =>
  Object.fromEntries(
    PROGRAM_PARTS.map((part) => [part, partOf(program, part)] as const).filter(([, path]) => existsSync(path))
  )

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

const BUNDLE = join(packageFolder, "dist", "choir-agent.js")

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
