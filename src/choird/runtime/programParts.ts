/** The files of the agent's program: Node is given the first, and the others lie beside it under its name. */
import { existsSync } from "node:fs"
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
