/** The flags that every command takes. */
import { join } from "node:path"
import { Option } from "effect"
import { Command, Flag } from "effect/cli"
import { homeFolder, onHome } from "#src/shared/files/homeFolder.ts"

// An import of node:fs evaluates exports that load streams and readline, which take as long as a tenth of a call.
const fs = process.getBuiltinModule("node:fs")

const home = Flag.String("home").pipe(
  Flag.withDescription("Choir's home (also CHOIR_HOME)"),
  Flag.withMetavar("<folder>"),
  Flag.optional,
  Flag.map((path) => homeFolder(Option.getOrUndefined(path)))
)

const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print only JSON on standard output"),
  Flag.withDefault(false)
)

/** `choirctl` itself. A command reads the shared flags by yielding it. */
export const root = Command.make("choirctl").pipe(
  Command.withSharedFlags({ home, json }),
  Command.withDescription("Set up, start and monitor the agents on this host")
)

/** The configuration of a home. */
export const configPath = (folder: string): string => join(folder, "config.json")

/** Where choird listens for operators. */
export const operatorSocket = (folder: string): string => join(folder, "socks", "choird.sock")

/** The command that makes choird answer on this home: its start, or its set-up where there is no configuration. */
export const startCommand = (folder: string): string =>
  onHome(folder, fs.existsSync(configPath(folder)) ? "choirctl daemon start" : "choirctl init")
