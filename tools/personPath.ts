/** The PATH of the person who calls a script of npm, and whether they can type choirctl. */
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"

/** The folders of the PATH, without those that npm put in front for its scripts. */
export const pathFolders = (): ReadonlyArray<string> =>
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "" && !/\/node_modules\/(?:\.bin|.*node-gyp-bin)$/u.test(folder))

export const executable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Whether the person can type the name of a program. */
export const canType = (name: string): boolean => pathFolders().some((folder) => executable(join(folder, name)))
