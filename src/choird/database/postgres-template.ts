/**
 * Makes the template of a new embedded database: `node postgres-template.ts FILE`. Part of the build, so that a first start
 * need not make a database from nothing. A file that is newer than the engine's lock entry and this program stays.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { openPglite } from "./pglite.ts"

const make = async (file: string) => {
  const folder = mkdtempSync(join(tmpdir(), "choir-template-"))
  const partial = `${file}.${process.pid}`
  const db = await openPglite(join(folder, "data"))
  await db.close()
  mkdirSync(dirname(file), { recursive: true })
  execFileSync("tar", ["--format=ustar", "-C", join(folder, "data"), "-czf", partial, "."])
  renameSync(partial, file)
  rmSync(folder, { recursive: true })
}

const changed = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

const file = process.argv[2]
if (file === undefined) throw new Error("usage: postgres-template FILE")
const root = join(import.meta.dirname, "../../..")
const sources = [join(root, "package-lock.json"), import.meta.filename, join(import.meta.dirname, "pglite.ts")]
if (sources.some((source) => changed(source) >= changed(file))) await make(file)
