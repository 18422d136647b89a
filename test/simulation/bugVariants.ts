/**
 * Several planted bugs in one process. Each has its own instances of the modules that its edits change and of all that import them, and
 * shares the others, above all the library: those are loaded, compiled and optimized once.
 */
import { registerHooks, stripTypeScriptTypes } from "node:module"
import type { Mutant } from "./Mutant.ts"
import { applied, type Edit } from "./patchSources.ts"

/** What a module's URL has behind its path: the name of the bug whose instance it is. */
const MARK = "?bug="
const ROOT = new URL("../..", import.meta.url).href

const editsOf = ({ also = [], ...edit }: Mutant): ReadonlyArray<Edit> => [edit, ...also]
const urlOf = ({ file }: Edit): string => ROOT + file

/** The modules that import these, directly or by way of others, and these themselves. */
const reaching = (files: ReadonlyArray<string>, importers: ReadonlyMap<string, ReadonlySet<string>>) => {
  const reached = new Set(files)
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer)
  return reached
}

/** Loads the program without any bug; the answer loads it with one. Has to run before the first module of the product is loaded. */
export const bugVariants = async (mutants: ReadonlyArray<Mutant>) => {
  const edits = new Map(mutants.map((mutant) => [mutant.name, editsOf(mutant)]))
  const importers = new Map<string, Set<string>>()
  const own = new Map<string, ReadonlySet<string>>()
  const texts = new Map<string, string>()
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context)
      const { url } = resolved
      if (!url.startsWith(ROOT) || url.includes("/node_modules/") || url.includes(MARK)) return resolved
      const [parent = "", bug] = (context.parentURL ?? "").split(MARK)
      const known = importers.get(url) ?? new Set()
      importers.set(url, known.add(parent))
      return bug !== undefined && own.get(bug)?.has(url) === true ? { ...resolved, url: url + MARK + bug } : resolved
    },
    load: (url, context, nextLoad) => {
      const [path = "", bug] = url.split(MARK)
      if (bug === undefined) return nextLoad(url, context)
      const mine = edits.get(bug)?.filter((edit) => urlOf(edit) === path) ?? []
      const text = mine.length > 0 ? undefined : texts.get(path)
      if (text !== undefined) return { format: "module", shortCircuit: true, source: text }
      const loaded = Buffer.from(nextLoad(url, context).source as Uint8Array).toString("utf8")
      const source = stripTypeScriptTypes(mine.reduce(applied, loaded))
      if (mine.length === 0) texts.set(path, source)
      return { format: "module", shortCircuit: true, source }
    }
  })
  await import("./hunt.ts")
  return async (mutant: Mutant): Promise<typeof import("./hunt.ts")> => {
    const { name } = mutant
    const reached = reaching(editsOf(mutant).map(urlOf), importers)
    if (!reached.has(new URL("hunt.ts", import.meta.url).href)) throw new Error(`no seed runs what ${name} changes`)
    own.set(name, reached)
    return import(`./hunt.ts${MARK}${name}`)
  }
}
