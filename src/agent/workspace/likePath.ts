/** Finds what a path that leads nowhere may have meant: letters with marks have two spellings, of which a disk has one and models write the other. */
import { lstat, opendir } from "node:fs/promises"
import { codeOf, descriptorPath } from "#src/shared/files/nofollow.ts"
import { closeLater, openFolder } from "./workspaceFiles.ts"

/** Names of a folder that are compared. */
const NAMES_COMPARED_MAX = 5000

const sameSigns = (name: string): string => name.normalize("NFC")
const sameLetters = (name: string): string => name.normalize("NFC").toLowerCase()

const isThere = (folder: number, name: string): Promise<boolean> =>
  lstat(`${descriptorPath(folder)}/${name}`).then(
    () => true,
    (error: unknown) => codeOf(error) !== "ENOENT"
  )

/** The entry whose name is the same but for the spelling of its letters or, unless `exact`, their case. */
const likeName = async (folder: number, name: string, exact: boolean): Promise<string | undefined> => {
  let near: string | undefined
  let compared = 0
  for await (const { name: entry } of await opendir(descriptorPath(folder))) {
    if (sameSigns(entry) === sameSigns(name)) return entry
    if (!exact && sameLetters(entry) === sameLetters(name)) near ??= entry
    if (++compared === NAMES_COMPARED_MAX) break
  }
  return near
}

/** The path below an open folder that is like these names and exists; `undefined` where none is. */
export const likePath = async (
  root: number,
  names: ReadonlyArray<string>,
  exact: boolean,
  signal: AbortSignal
): Promise<string | undefined> => {
  const found: Array<string> = []
  let folder = root
  try {
    for (const name of names) {
      const like = (await isThere(folder, name)) ? name : await likeName(folder, name, exact)
      if (like === undefined) return undefined
      found.push(like)
      if (found.length === names.length) break
      const next = await openFolder(folder, [like], false, signal)
      if (folder !== root) closeLater(folder)
      folder = next
    }
    return found.join("/")
  } finally {
    if (folder !== root) closeLater(folder)
  }
}
