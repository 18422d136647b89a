/** Which folder is Choir's home, for all of its programs alike. */
import { homedir } from "node:os"
import { join, resolve } from "node:path"

/** The home when neither a flag nor the environment names one. */
export const DEFAULT_HOME = join(homedir(), ".choir.d")

/**
 * The folder of a flag, else of CHOIR_HOME, else the default. An empty name is none, as for the shell: it would mean whatever folder
 * the program was started in.
 */
export const homeFolder = (flag: string | undefined, environment = process.env["CHOIR_HOME"]): string =>
  resolve([flag, environment].find((name) => name !== undefined && name !== "") ?? DEFAULT_HOME)
