/** The browser of this host, if it has one. */
import { accessSync, constants } from "node:fs"

/** Debian's place first: the program itself, without the script before it that reads further flags. */
const PROGRAMS = [
  "/usr/lib/chromium/chromium",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome-stable"
]

/** The fix for a host without a browser. */
export const CHROMIUM_FIX = "install Chromium, in Debian: apt-get install chromium"

const canRun = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Where Chromium is, or `undefined` on a host that has none. */
export const chromiumProgram = (programs: ReadonlyArray<string> = PROGRAMS): string | undefined => programs.find(canRun)
