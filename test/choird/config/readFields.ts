/** Fields that no code reads, by the compiler's knowledge of types. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { type Place, startLanguageServer } from "./languageServer.ts"
import { isNode, lastName, parsed, type SyntaxNode, walk } from "../../support/syntax.ts"

/** A field of an object in the source that declares it. */
export interface Field extends Place {
  readonly name: string
}

/** The fields of an object literal. */
export const fieldsOf = (path: string, object: SyntaxNode): ReadonlyArray<Field> =>
  (Array.isArray(object["properties"]) ? object["properties"].filter(isNode) : []).flatMap(({ key, type }) =>
    type === "Property" && isNode(key) && key.type === "Identifier"
      ? [{ name: lastName(key) ?? "", path, offset: key.start }]
      : []
  )

/** Where objects are made in a file, the places of their keys: to give a field a value does not read it. */
const writesIn = (path: string): ReadonlySet<number> => {
  const found = new Set<number>()
  walk(parsed(path, readFileSync(path, "utf8")).tree, (node) => {
    if (node.type === "ObjectExpression") for (const { offset } of fieldsOf(path, node)) found.add(offset)
  })
  return found
}

/** Where the programs are. A server that reads the tests and tools as well takes four times as long. */
const PROGRAMS = ["schema", "src"]

/** A copy of the programs as a package of its own. */
const copyPrograms = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "choir-test-fields-"))
  for (const name of [...PROGRAMS, "package.json"])
    cpSync(join(packageFolder, name), join(folder, name), { recursive: true })
  symlinkSync(join(packageFolder, "node_modules"), join(folder, "node_modules"))
  const settings = { extends: join(packageFolder, "tsconfig.json"), include: PROGRAMS }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings))
  return folder
}

/** The fields that no program reads, as `file: field`. */
export const unreadFields = async (fields: ReadonlyArray<Field>): Promise<ReadonlyArray<string>> => {
  const writes = new Map<string, ReadonlySet<number>>()
  const isRead = ({ offset, path }: Place): boolean => {
    const known = writes.get(path) ?? writesIn(path)
    writes.set(path, known)
    return !known.has(offset)
  }
  const folder = copyPrograms()
  const server = await startLanguageServer(folder)
  try {
    const unread = new Set<string>()
    for (const field of fields) {
      const place = relative(packageFolder, field.path)
      const uses = await server.references({ path: join(folder, place), offset: field.offset })
      if (!uses.some(isRead)) unread.add(`${place}: ${field.name}`)
    }
    return [...unread].toSorted()
  } finally {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
