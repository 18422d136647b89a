/** Runs before the tests of each project that has databases: starts the Postgres that they share, and makes the template of the embedded database. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { heldByProjects } from "./heldByProjects.ts"
import { leaveOut } from "./packages.ts"
import { startPostgres, type TestPostgres, whyNoPostgres } from "./postgres.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** The shared server, with the name of a migrated database, or the reason why it is missing. */
    postgres: (Pick<TestPostgres, "host" | "port" | "user"> & { readonly migrated: string }) | string
    embeddedTemplate: string
    /** The same, migrated. */
    migratedTemplate: string
  }
}

const ROOT = join(import.meta.dirname, "../..")
/** The template of the build, which is made before. */
const EMPTY = join(ROOT, "dist/postgres-template.tar.gz")

const MIGRATIONS = "src/choird/database/migrations"
const MIGRATED_SCRIPT = join(import.meta.dirname, "migratedTemplate.ts")
/** What a server needs to survive a crash: nobody kills the shared one, and what it holds is gone with the run. */
const WITHOUT_SAFETY = ["fsync=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0"]
/** The database of the shared server that those of the suites are copies of. */
const MIGRATED = "choir_migrated"

/** A file that is made once for each state of the parts that it comes from. */
const cached = (name: string, parts: ReadonlyArray<string>, make: (file: string) => void): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(readFileSync(join(ROOT, part)))
  const folder = join(ROOT, "node_modules/.cache/choir")
  const file = join(folder, `${name}-${hash.digest("hex").slice(0, 16)}.tar.gz`)
  mkdirSync(folder, { recursive: true })
  if (!existsSync(file)) make(file)
  return file
}

const run = (...words: ReadonlyArray<string>) => execFileSync(process.execPath, words, { stdio: "inherit" })

const ENGINE = ["package-lock.json", "src/choird/database/postgres-template.ts", "src/choird/database/pglite.ts"]

const migrations = () => [
  "src/choird/database/Migrations.ts",
  ...readdirSync(join(ROOT, MIGRATIONS)).map((name) => join(MIGRATIONS, name))
]

const startServer = async () => {
  const missing = whyNoPostgres()
  if (missing !== undefined)
    return { postgres: leaveOut("the suites on Postgres", missing), stop: async () => undefined }
  const { host, port, stop, user } = await startPostgres({ vector: true, settings: WITHOUT_SAFETY })
  const server = { host, port, user }
  run(MIGRATED_SCRIPT, "postgres", JSON.stringify({ ...server, database: MIGRATED, ssl: false }))
  return { postgres: { ...server, migrated: MIGRATED }, stop }
}

export default async ({ provide }: TestProject) => {
  provide("embeddedTemplate", EMPTY)
  provide(
    "migratedTemplate",
    cached("migrated-template", [...ENGINE, ...migrations()], (file) => run(MIGRATED_SCRIPT, "embedded", EMPTY, file))
  )
  const [{ postgres }, release] = await heldByProjects("the server", startServer, ({ stop }) => stop())
  provide("postgres", postgres)
  return release
}
