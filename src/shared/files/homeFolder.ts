/** The choice of Choir's home, the same for all of its programs. */
import { homedir, userInfo } from "node:os"
import { isAbsolute, join, resolve } from "node:path"
import { Runtime, Schema } from "effect"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"

/** A home that no flag and no variable names, of a user who has no folder to put one in. */
export class HomeUnknown extends Schema.TaggedError<HomeUnknown>()("HomeUnknown", {}) {
  override readonly [Runtime.errorExitCode] = 78
  override get message() {
    return `Choir's home is unknown: HOME is not set, and this machine has no user with the id ${process.getuid?.() ?? 0}. Name a folder with --home or CHOIR_HOME`
  }
}

/** An id that no user of this machine has, as containers give one, has no folder, and the system then fails instead of saying so. */
const orNone = (folder: () => string): string | undefined => {
  try {
    const path = folder()
    return isAbsolute(path) ? path : undefined
  } catch {
    return undefined
  }
}

/** The folder of the user that runs this program, if there is one. An empty or relative HOME names none: it would be another one in each folder. */
export const userFolder: string | undefined = orNone(homedir) ?? orNone(() => userInfo().homedir)

/** The home when neither a flag nor the environment names one. */
export const DEFAULT_HOME: string | undefined = userFolder === undefined ? undefined : join(userFolder, ".choir.d")

/**
 * The folder of a flag, else of CHOIR_HOME, else the default. An empty name is none, as for the shell: it would mean whatever folder
 * the program was started in. Throws {@link HomeUnknown}.
 */
export const homeFolder = (flag: string | undefined, environment = process.env["CHOIR_HOME"]): string => {
  const named = [flag, environment].find((name) => name !== undefined && name !== "") ?? DEFAULT_HOME
  if (named === undefined) throw new HomeUnknown()
  return resolve(named)
}

/** The folders that choird makes in a home (docs/operating.md). */
export const HOME_FOLDERS = [
  "socks",
  "socks/agents",
  "repos",
  "logs",
  "logs/archive",
  "data",
  "images",
  "archive",
  "outgoing"
]

/** The first words of choirctl's commands, which tell a command in a text from prose. */
export const COMMAND_NAMES = [
  "agent",
  "approval",
  "audit",
  "backup",
  "chat",
  "completions",
  "config",
  "daemon",
  "db",
  "dm",
  "doctor",
  "gateway",
  "grant",
  "home",
  "init",
  "logs",
  "memory",
  "model",
  "plan",
  "profile",
  "prune",
  "restore",
  "secret",
  "session",
  "skill",
  "status",
  "tool",
  "voice",
  "workspace"
]

const COMMAND = new RegExp(String.raw`(?<![\w/-])choirctl (?=(?:${COMMAND_NAMES.join("|")})\b)`, "gu")

/** The words by which a person calls choirctl where it is not on their PATH; `npm start` and the launchers set the variable. */
const called = (): string => process.env["CHOIR_COMMAND"] || "choirctl"

/** A text whose commands of choirctl are about this home, as a person can paste them. */
export const onHome = (home: string, text: string): string =>
  text.replaceAll(COMMAND, () => `${called()} ${home === DEFAULT_HOME ? "" : `--home ${shellQuoted(home)} `}`)

/** The hint where a home is missing: the command that makes it, and how to name another. */
export const initHint = (home: string): string =>
  onHome(home, "choirctl init makes it; --home or CHOIR_HOME names another home")
