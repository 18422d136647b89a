/** How the processes of a call are kept apart from those of all others, which the kernel of this host does as far as it can. */
import { spawnSync } from "node:child_process"
import { accessSync, constants } from "node:fs"
import type { CallsApart } from "#schema/AgentApi.ts"
import { ApartMode, LANDLOCK_DOMAIN, LANDLOCK_SCOPED, modeText } from "./apartProgram.ts"

/** How long the kernel may take to say what it offers. */
const PROBE_MS_MAX = 5000

export interface Apart {
  /** The path of the program that starts commands apart; absent where this machine cannot run it. */
  readonly program?: string
  readonly level: CallsApart
}

/** For an agent without that program. */
export const NOT_APART: Apart = { level: "none" }

/** Each level in words for an operator. */
export const APART_WORDS: Readonly<Record<CallsApart, string>> = {
  full: "each command runs in a Landlock domain of its own",
  memory:
    "each command runs in a Landlock domain of its own, but this kernel does not keep signals and abstract sockets apart; Linux 6.12 does",
  none: "there is no Landlock here, so a tool gets secrets only while no other command of its agent runs; Linux 5.19 or later has it"
}

/** The weakest of these levels. */
export const weakestApart = (levels: ReadonlyArray<CallsApart>): CallsApart | undefined =>
  (["none", "memory", "full"] as const).find((level) => levels.includes(level))

const MODE_OF: Readonly<Record<CallsApart, number>> = {
  full: ApartMode.SCOPED,
  memory: ApartMode.DOMAIN,
  none: 0
}

/** Whether a command can be kept from writing but below some folders. */
export const limitsWrites = ({ level }: Apart): boolean => level === "full"

/** The command line that starts a command apart, without a network and able to write below the folders alone that it hands on, where that is wanted. */
export const apartFrom = (
  { level, program }: Apart,
  { folders, offline }: { readonly folders: boolean; readonly offline: boolean }
): ReadonlyArray<string> => {
  const mode = (folders ? ApartMode.FOLDERS : MODE_OF[level]) + (offline ? ApartMode.OFFLINE : 0)
  if (program === undefined) return []
  return mode === 0 ? [] : [program, modeText(mode)]
}

/** Whether a program is there and may be run. */
export const canRun = (program: string): boolean => {
  try {
    accessSync(program, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The program's exit code: a version of Landlock, 0 for none. */
const versionBy = (program: string, ...args: ReadonlyArray<string>): number =>
  spawnSync(program, args, { stdio: "ignore", env: {}, timeout: PROBE_MS_MAX }).status ?? 0

/**
 * Asks the kernel what it offers, and tries that once: a filter around the agent may allow the question and not the deed. Once at
 * the start of an agent; nothing asks again.
 */
export const probeApart = (program: string): Apart => {
  if (!canRun(program)) return NOT_APART
  const version = versionBy(program)
  const level = version >= LANDLOCK_SCOPED ? "full" : version >= LANDLOCK_DOMAIN ? "memory" : "none"
  if (level === "none") return { program, level }
  return { program, level: versionBy(program, modeText(MODE_OF[level]), program) === version ? level : "none" }
}
