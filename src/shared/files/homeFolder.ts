/** The choice of Choir's home, the same for all of its programs. */
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"

/** The home when neither a flag nor the environment names one. */
export const DEFAULT_HOME = join(homedir(), ".choir.d")

/**
 * The folder of a flag, else of CHOIR_HOME, else the default. An empty name is none, as for the shell: it would mean whatever folder
 * the program was started in.
 */
export const homeFolder = (flag: string | undefined, environment = process.env["CHOIR_HOME"]): string =>
  resolve([flag, environment].find((name) => name !== undefined && name !== "") ?? DEFAULT_HOME)

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
  "init",
  "logs",
  "memory",
  "model",
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

const COMMAND = new RegExp(String.raw`\bchoirctl (?=(?:${COMMAND_NAMES.join("|")})\b)`, "gu")

/** A text whose commands of choirctl are about this home, as a person can paste them. */
export const onHome = (home: string, text: string): string =>
  home === DEFAULT_HOME ? text : text.replaceAll(COMMAND, () => `choirctl --home ${shellQuoted(home)} `)

/** The hint where a home is missing: the command that makes it, and how to name another. */
export const initHint = (home: string): string =>
  onHome(home, "choirctl init makes it; --home or CHOIR_HOME names another home")
