/** Runs the tests of the invariants over mutated sources, which never touch the disk: the text is replaced as a module is loaded. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig, type Plugin } from "vitest/config"
import { MUTATIONS, mutated } from "./mutations.ts"

const ROOT = join(import.meta.dirname, "../..")
const UNDER_TEST = join(import.meta.dirname, "underTest.ts")
const QUERY = "?mutation="

const remembered = <A>(of: (path: string) => A) => {
  const known = new Map<string, A>()
  return (path: string): A => {
    const value = known.get(path) ?? of(path)
    known.set(path, value)
    return value
  }
}

/** The own modules that a module imports. */
const importsOf = remembered((path) =>
  [...readFileSync(path, "utf8").matchAll(/(?:\bfrom|\bimport|\bimport\()\s*"([#.][\w./-]+)"/gu)].map(([, name = ""]) =>
    name.startsWith("#") ? join(ROOT, name.slice(1)) : join(path, "..", name)
  )
)

/** Everything that a module brings along, itself included. */
const reachedFrom = remembered((start): ReadonlySet<string> => {
  const found = new Set([start])
  for (const path of found) for (const next of importsOf(path)) found.add(next)
  return found
})

const fileOf = (id: string | undefined) => {
  const mutation = MUTATIONS.find((mutation) => mutation.id === id)
  return mutation === undefined ? undefined : join(ROOT, mutation.file)
}

/** A mutation has its own copy of each module that depends on its file; all others are shared. */
const depends = (path: string, id: string): boolean =>
  reachedFrom(path).has(fileOf(id) ?? "") || reachedFrom(path).has(UNDER_TEST)

const mutations: Plugin = {
  name: "choir-mutations",
  enforce: "pre",
  async resolveId(source, importer) {
    const [path, id] = importer?.split(QUERY) ?? []
    if (id === undefined || source.includes(QUERY)) return null
    const found = await this.resolve(source, path, { skipSelf: true })
    const isOwn = found?.id.startsWith(`${ROOT}/`) === true && !found.id.includes("/node_modules/")
    return isOwn && depends(found.id, id) ? `${found.id}${QUERY}${id}` : found
  },
  transform(code, id) {
    const [path, wanted] = id.split(QUERY)
    if (wanted !== undefined && path === UNDER_TEST) return `export const MUTATION_ID = ${JSON.stringify(wanted)}`
    const mutation = MUTATIONS.find((mutation) => mutation.id === wanted && fileOf(wanted) === path)
    return mutation === undefined ? null : mutated(code, mutation)
  }
}

export default defineConfig({
  root: ROOT,
  plugins: [mutations],
  test: { include: ["test/invariants/mutants.ts"], isolate: false, testTimeout: 200_000 }
})
