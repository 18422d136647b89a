/** The embedded engine as Choir runs it: with pgvector, and small, since it serves one person (docs/operating.md). */
import { PGlite } from "@electric-sql/pglite"
import { vector } from "@electric-sql/pglite-pgvector"
import { setFlagsFromString } from "node:v8"

const SETTINGS = ["-c", "shared_buffers=32MB"]

/**
 * Opens the database in `folder`, making it when there is none.
 *
 * WebAssembly stays at the baseline compiler: optimizing the engine's largest functions takes half a gigabyte for a while and
 * 85 MB permanently, and speeds up only vector search and index builds, by a factor of two. The flags hold for the whole process.
 */
export const openPglite = (folder: string) => {
  setFlagsFromString("--no-wasm-dynamic-tiering")
  setFlagsFromString("--no-wasm-tier-up")
  return PGlite.create(folder, { extensions: { vector }, startParams: [...PGlite.defaultStartParams, ...SETTINGS] })
}
