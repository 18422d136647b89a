/** Fields that no code reads, by the compiler's knowledge of types. */
import { readFileSync } from "node:fs"
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

/** The fields that no program reads, as `file: field`. */
export const unreadFields = async (fields: ReadonlyArray<Field>): Promise<ReadonlyArray<string>> => {
  const writes = new Map<string, ReadonlySet<number>>()
  const isRead = ({ offset, path }: Place): boolean => {
    if (!["src/", "schema/"].some((folder) => path.startsWith(join(packageFolder, folder)))) return false
    const known = writes.get(path) ?? writesIn(path)
    writes.set(path, known)
    return !known.has(offset)
  }
  const server = await startLanguageServer()
  try {
    const unread = new Set<string>()
    for (const field of fields)
      if (!(await server.references(field)).some(isRead))
        unread.add(`${relative(packageFolder, field.path)}: ${field.name}`)
    return [...unread].toSorted()
  } finally {
    server.close()
  }
}
