/** What stands where a home is, or is to be. */
import { lstatSync, readdirSync } from "node:fs"

/** `unusable` is what no home can be made of. */
export type HomePlace =
  | { readonly type: "missing" }
  | { readonly type: "folder"; readonly empty: boolean; readonly mode: number }
  | { readonly type: "unusable"; readonly problem: string; readonly fix: string }

/** @param flag the flag that names another place. */
export const homePlace = (home: string, flag: "--home" | "--to"): HomePlace => {
  const stat = lstatSync(home, { throwIfNoEntry: false })
  if (stat === undefined) return { type: "missing" }
  const unusable = (problem: string, fix = `choose another ${flag}`): HomePlace => ({ type: "unusable", problem, fix })
  if (stat.isSymbolicLink()) return unusable("it is a symbolic link", "name the folder that it leads to")
  if (!stat.isDirectory()) return unusable("it is not a folder")
  if (stat.uid !== process.getuid?.()) return unusable("it belongs to another user")
  return { type: "folder", empty: readdirSync(home).length === 0, mode: stat.mode & 0o777 }
}
