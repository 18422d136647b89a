/** Runs once before the tests: starts the Postgres that they share, and makes the template of the embedded database. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { startPostgres, type TestPostgres, whyNoPostgres } from "./postgres.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** The shared server, or why there is none. */
    postgres: Pick<TestPostgres, "host" | "port" | "user"> | string
    embeddedTemplate: string
  }
}

const ROOT = join(import.meta.dirname, "../..")
const SCRIPT = join(ROOT, "src/choird/database/postgres-template.ts")

/** The template, made once for each version of the engine and of the way it is made. */
const embeddedTemplate = (): string => {
  const hash = createHash("sha256")
  for (const part of [
    "package-lock.json",
    "src/choird/database/postgres-template.ts",
    "src/choird/database/pglite.ts"
  ]) {
    hash.update(readFileSync(join(ROOT, part)))
  }
  const file = join(ROOT, `node_modules/.cache/choir/postgres-template-${hash.digest("hex").slice(0, 16)}.tar.gz`)
  if (!existsSync(file)) execFileSync(process.execPath, [SCRIPT, file], { stdio: "inherit" })
  return file
}

export default async ({ provide }: TestProject) => {
  provide("embeddedTemplate", embeddedTemplate())
  const missing = whyNoPostgres()
  if (missing !== undefined) {
    if (process.env["CI"] === "true") throw new Error(`no Postgres: ${missing}`)
    console.warn(`Left out: the suites on Postgres. ${missing}.`)
    provide("postgres", missing)
    return undefined
  }
  const { host, port, stop, user } = await startPostgres({ vector: true })
  provide("postgres", { host, port, user })
  return stop
}
