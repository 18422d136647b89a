/**
 * First half of `npm run build:library`: lays the library's sources out as its exports name them. In the repository they name each
 * other by aliases and `.ts`, which Node understands nowhere below `node_modules`; the copies have relative `.js` names, so that the
 * compiler needs to change nothing.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { withOwnClients, writeOwnClients } from "./ownClients.ts"

/** Folders of the library and where the repository has them; some are not exported but needed by the others. */
const FOLDERS = {
  schema: "schema",
  agent: "src/agent",
  choird: "src/choird",
  shared: "src/shared",
  dialects: "demo/dialects",
  "offline-model": "demo/offline-model",
  providers: "test/support/providers",
  testing: "test/support/testing"
}

/** Programs, which do something when they are imported, and what only the program of a closed process imports: the build has made one file of each. */
const PROGRAMS = new Set([
  "embedding-worker.ts",
  "launch.ts",
  "main.ts",
  "postgres-template.ts",
  // Of one page and of one PDF:
  "page-worker.ts",
  "pageMarkdown.ts",
  "pdf-worker.ts",
  "pdfText.ts",
  // Of one mail:
  "boundedMime.ts",
  "calendarText.ts",
  "mail-worker.ts",
  "mailPeople.ts",
  "mailWords.ts",
  "readMime.ts",
  // Of both:
  "formValues.ts",
  "htmlDocument.ts",
  "htmlMarkdown.ts",
  "htmlTables.ts",
  "seenPage.ts"
])

const SPECIFIER = /((?:\bfrom|\bimport) |\bimport\()"(#[^"]+|\.\.?\/[^"]+)\.ts"/gu

const inLibrary = (specifier: string): string =>
  specifier.startsWith("#schema/") ? specifier.slice(1) : specifier.replace(/^#(?:src|demo)\//u, "")

/** The text of a module at `path` in the library. */
const relocated = (path: string, text: string): string =>
  withOwnClients(path, text).replaceAll(SPECIFIER, (_, keyword: string, specifier: string) => {
    if (!specifier.startsWith("#")) return `${keyword}"${specifier}.js"`
    const place = relative(dirname(path), inLibrary(specifier))
    return `${keyword}"${place.startsWith(".") ? place : `./${place}`}.js"`
  })

const modulesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".ts") && !PROGRAMS.has(basename(name))
  )

const target = join(packageFolder, "dist", "library-source")
for (const folder of [target, join(packageFolder, "dist", "library")]) rmSync(folder, { recursive: true, force: true })
writeOwnClients()
for (const [folder, place] of Object.entries(FOLDERS)) {
  const source = join(packageFolder, place)
  for (const name of modulesIn(source)) {
    const path = join(folder, name)
    mkdirSync(dirname(join(target, path)), { recursive: true })
    writeFileSync(join(target, path), relocated(path, readFileSync(join(source, name), "utf8")))
  }
}
