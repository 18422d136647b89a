/**
 * The package.json of the packed package: `node packedManifest.ts write` before npm packs, `... restore` after it. A package needs
 * what its library and programs need at run time; the rest is the repository's: its scripts, its tools, and the Node that it brings.
 * `effect` is the host's, since its services and errors are distinguished by identity (docs/embedding.md).
 */
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

// No alias is imported here: they are among what the written manifest lacks.
const ROOT = join(import.meta.dirname, "..")
const MANIFEST = join(ROOT, "package.json")
const KEPT = join(ROOT, "package.repository.json")
const REPOSITORY_ONLY = new Set(["imports", "scripts", "devDependencies", "optionalDependencies", "allowScripts"])

type Manifest = Readonly<Record<string, unknown>>

const packed = (manifest: Manifest): Manifest => {
  const peers = manifest["peerDependencies"] as Readonly<Record<string, string>>
  const own = Object.entries(manifest["dependencies"] as Readonly<Record<string, string>>)
  const dependencies = Object.fromEntries(own.filter(([name]) => !Object.hasOwn(peers, name)))
  const entries = Object.entries({ ...manifest, dependencies })
  return Object.fromEntries(entries.filter(([key]) => !REPOSITORY_ONLY.has(key)))
}

const write = () => {
  if (existsSync(KEPT)) throw new Error(`${KEPT} is left from a packing that broke off: run npm run postpack`)
  copyFileSync(MANIFEST, KEPT)
  const manifest = JSON.parse(readFileSync(MANIFEST, "utf8")) as Manifest
  writeFileSync(MANIFEST, `${JSON.stringify(packed(manifest), undefined, 2)}\n`)
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
