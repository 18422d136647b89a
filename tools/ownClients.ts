/**
 * Clients that the build makes one file of, for the library: `dist/vendor/<package>.js` passes the client on, and its declarations are beside it, without
 * those of what the client is built without. So a project that uses the library installs none of their packages.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join, posix } from "node:path"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { MAIL } from "#src/shared/program/compiledProgram.ts"

const VENDOR = join(packageFolder, "dist", "vendor")

const { resolve } = createRequire(import.meta.url)

const passingOn = (name: string, file: string) => `export { ${name} } from "../${file}"\n`

/** The modules by which the library gets each client, in place of its package. */
const CLIENTS: Readonly<Record<string, string>> = {
  dockerode: passingOn("default", "docker-client.js"),
  imapflow: passingOn("ImapFlow", `choir-agent${MAIL}`)
}

/** Imports of these packages in the library's sources. */
const IMPORT = new RegExp(`(\\bfrom )"(${Object.keys(CLIENTS).join("|")})"`, "gu")

/** The text of a module at `path` of the library, with the clients from their place beside it. */
export const withOwnClients = (path: string, text: string): string =>
  text.replaceAll(
    IMPORT,
    (_, from: string, name: string) => `${from}"${posix.relative(dirname(path), `../vendor/${name}.js`)}"`
  )

const write = (name: string, text: string) => {
  const path = join(VENDOR, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** Declarations of CommonJS as those of a module, which the client is in the build. SSH is what it is built without. */
const asModule = (text: string): string =>
  text
    .replaceAll(/^import (\w+) = require\("docker-modem"\);$/gmu, 'import $1 from "./docker-modem.js";')
    .replaceAll(/^import (\w+) = require\("(\w+)"\);$/gmu, 'import $1 from "node:$2";')
    .replaceAll(/^import \{ ConnectConfig \} from "(?:ssh2)";$/gmu, "type ConnectConfig = never;")
    .replaceAll(/^export = (\w+);$/gmu, "export default $1;")

/** A declaration and all that it imports from files beside it. */
const copyDeclarations = (folder: string, name: string, into: string, seen = new Set<string>()): void => {
  if (seen.has(name)) return
  seen.add(name)
  const text = readFileSync(join(folder, `${name}.d.ts`), "utf8")
  write(join(into, `${name}.d.ts`), text)
  for (const [, wanted = ""] of text.matchAll(/\bfrom '(\.[^']+)\.js'/gu))
    copyDeclarations(folder, posix.join(posix.dirname(name), wanted), into, seen)
}

/** Writes `dist/vendor` as it has to be before the library is compiled. */
export const writeOwnClients = (): void => {
  rmSync(VENDOR, { recursive: true, force: true })
  for (const [name, text] of Object.entries(CLIENTS)) write(`${name}.js`, text)
  for (const name of ["dockerode", "docker-modem"])
    write(`${name}.d.ts`, asModule(readFileSync(resolve(`@types/${name}/index.d.ts`), "utf8")))
  copyDeclarations(dirname(resolve("imapflow")), "imap-flow", "imapflow")
  write("imapflow.d.ts", `export * from "./imapflow/imap-flow.js"\n`)
}
