/**
 * A program with the form that V8 compiled it to before: neither read nor compiled again at each start. It is only taken by the V8 that
 * made it, with the same flags; any other compiles the program as ever.
 */
import { hash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { constants, Script } from "node:vm"

/** The suffixes of the files beside a program `<name>.js` that is started so. */
export const CODE = ".code.js"
export const CACHE = ".cache"
/** The suffix of what an agent with mail loads beside its program. */
export const MAIL = ".mail.js"
/** The suffix of the program that reads one mail, beside an agent's program. */
export const MAIL_READER = ".mail-reader.js"
/** The suffix of the program that runs commands apart from each other and without a network, beside an agent's program. */
export const APART = ".apart"

export interface CompiledProgram {
  /** Whether V8 took the compiled form. */
  readonly was_compiled: boolean
  run(): void
  /** Writes the compiled form, with every function that ran meanwhile, for the next start. */
  keep(): void
}

/** V8 itself looks at no more of the code than its length. */
const digestOf = (code: string): Buffer => hash("sha256", code, "buffer")

/** The compiled form of this code, if it is there and is of no other. */
const cachedFor = (program: string, digest: Buffer): Buffer | undefined => {
  try {
    const bytes = readFileSync(program.replace(/\.js$/u, CACHE))
    return bytes.subarray(0, digest.length).equals(digest) ? bytes.subarray(digest.length) : undefined
  } catch {
    return undefined
  }
}

/** The code is one function in ASCII, as the build writes it. */
export const loadProgram = (program: string): CompiledProgram => {
  const filename = program.replace(/\.js$/u, CODE)
  const code = readFileSync(filename, "latin1")
  const digest = digestOf(code)
  const cachedData = cachedFor(program, digest)
  const script = new Script(code, {
    filename,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData === undefined ? {} : { cachedData })
  })
  return {
    was_compiled: cachedData !== undefined && script.cachedDataRejected === false,
    run: () => script.runInThisContext()(createRequire(filename), filename),
    keep: () => writeFileSync(program.replace(/\.js$/u, CACHE), Buffer.concat([digest, script.createCachedData()]))
  }
}
