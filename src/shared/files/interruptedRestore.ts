/**
 * The last step of a restore over a home, which takes two renames: the old home is moved aside, and the new one takes its place. A process
 * that dies between them leaves no home, and the new one whole beside it. Every program that opens a home finishes that step first.
 */
import { existsSync, lstatSync, readdirSync, renameSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { codeOf } from "./nofollow.ts"

const RESTORED = ".restored-"

/** The time of a restore as its folders' names have it. */
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z$/u

/** Where a home stands that was restored whole and has not taken its place yet. @param time of the restore, as part of a name. */
export const restoredBeside = (home: string, time: string): string => `${home}${RESTORED}${time}`

/** The time of the restore that made a folder of this name beside the home; nothing for a name of another kind. */
export const restoreTimeIn = (home: string, name: string): string | undefined => {
  const prefix = `${basename(home)}${RESTORED}`
  const time = name.startsWith(prefix) ? name.slice(prefix.length) : ""
  return TIME.test(time) ? time : undefined
}

/** Where the same restore moves the old home. */
export const asideOf = (home: string, time: string): string => `${home}.before-restore-${time}`

/**
 * Puts a restored home in its place, if its restore has moved the old one aside and went no further. Answers whether it did. A new home whose
 * old one is not aside stays where it is: its restore was not agreed on to that point. Throws what the system says.
 */
export const finishRestore = (home: string): boolean => {
  const folder = dirname(home)
  if (lstatSync(home, { throwIfNoEntry: false }) !== undefined || !existsSync(folder)) return false
  const fresh = readdirSync(folder).find((name) => {
    const time = restoreTimeIn(home, name)
    return time !== undefined && existsSync(asideOf(home, time))
  })
  if (fresh === undefined) return false
  try {
    renameSync(join(folder, fresh), home)
    return true
  } catch (error) {
    // Another program has done the same meanwhile.
    if (codeOf(error) === "ENOENT" && existsSync(home)) return false
    throw error
  }
}
