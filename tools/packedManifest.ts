/**
 * The package.json of the packed package: `node packedManifest.ts write` before npm packs, `... restore` after it. A package needs
 * what its library and programs need at run time; the rest is the repository's: its scripts, its tools, and the Node that it brings.
 * `effect` is the host's, since its services and errors are distinguished by identity (docs/embedding.md).
 */
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { installedPackages } from "./packedDependencies.ts"

// No alias is imported here: they are among what the written manifest lacks.
const ROOT = join(import.meta.dirname, "..")
const MANIFEST = join(ROOT, "package.json")
const KEPT = join(ROOT, "package.repository.json")
const REPOSITORY_ONLY = new Set([
  "imports",
  "scripts",
  "devDependencies",
  "optionalDependencies",
  "overrides",
  "allowScripts"
])

type Manifest = Readonly<Record<string, unknown>>

const packed = (manifest: Manifest): Manifest => {
  const named = installedPackages().filter(({ optional }) => !optional)
  const dependencies = Object.fromEntries(named.map(({ name, version }) => [name, version]))
  const entries = Object.entries({ ...manifest, dependencies })
  return Object.fromEntries(entries.filter(([key]) => !REPOSITORY_ONLY.has(key)))
}

const write = () => {
  if (existsSync(KEPT)) throw new Error(`${KEPT} is left from a packing that broke off: run npm run postpack`)
  const manifest = JSON.parse(readFileSync(MANIFEST, "utf8")) as Manifest
  const text = `${JSON.stringify(packed(manifest), undefined, 2)}\n`
  copyFileSync(MANIFEST, KEPT)
  writeFileSync(MANIFEST, text)
}

switch (process.argv[2]) {
  case "write":
    write()
    break
  case "restore":
    renameSync(KEPT, MANIFEST)
    break
  default:
    throw new Error("usage: packedManifest write|restore")
}
