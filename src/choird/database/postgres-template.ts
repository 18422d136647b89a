/**
 * Makes the template of a new embedded database: `node postgres-template.ts FILE`. Part of the build, so that a first start
 * copies a database instead of creating one.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
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

const file = process.argv[2]
if (file === undefined) throw new Error("usage: postgres-template FILE")
await make(file)
