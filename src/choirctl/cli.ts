/** The command tree, and the shell completions made of it. */
import { Effect } from "effect"
import { Argument, Command, Completions } from "effect/cli"
import { agent } from "#src/choirctl/commands/agent.ts"
import { approval } from "#src/choirctl/commands/approval.ts"
import { grant } from "#src/choirctl/commands/grant.ts"
import { audit } from "#src/choirctl/commands/audit.ts"
import { backup, restore } from "#src/choirctl/commands/backup.ts"
import { chat } from "#src/choirctl/commands/chat.ts"
import { config } from "#src/choirctl/commands/config.ts"
import { daemon } from "#src/choirctl/commands/daemon.ts"
import { database } from "#src/choirctl/commands/db.ts"
import { dm } from "#src/choirctl/commands/dm.ts"
import { gateway } from "#src/choirctl/commands/gateway.ts"
import { init } from "#src/choirctl/commands/init.ts"
import { logs } from "#src/choirctl/commands/logs.ts"
import { memory } from "#src/choirctl/commands/memory.ts"
import { models } from "#src/choirctl/commands/model.ts"
import { voice } from "#src/choirctl/commands/voice.ts"
import { prune } from "#src/choirctl/commands/retention.ts"
import { secret } from "#src/choirctl/commands/secret.ts"
import { session } from "#src/choirctl/commands/session.ts"
import { profile } from "#src/choirctl/commands/runs.ts"
import { skill, tool } from "#src/choirctl/commands/skill.ts"
import { doctor, status } from "#src/choirctl/commands/status.ts"
import { workspace } from "#src/choirctl/commands/workspace.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

/** @param described answers with the whole command tree, which holds this command too. */
const completions = (described: () => Command.Command.Any) =>
  Command.make(
    "completions",
    {
      shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(
        Argument.withDescription("Shell that the script is for")
      )
    },
    Effect.fnUntraced(function* ({ shell }) {
      const screen = yield* Screen
      const script = Completions.generate("choirctl", shell, Completions.fromCommand(described()))
      // Effect's header names a flag that only a program without this command has.
      yield* screen.print(script.replaceAll("choirctl --completions", "choirctl completions").trimEnd())
    })
  ).pipe(
    Command.withDescription("Print a shell completion script"),
    Command.withExamples([
      { command: "choirctl completions bash > ~/.local/share/bash-completion/completions/choirctl" }
    ])
  )

const commands = [
  init,
  agent,
  chat,
  session,
  memory,
  approval,
  grant,
  models,
  voice,
  skill,
  profile,
  tool,
  secret,
  gateway,
  dm,
  workspace,
  config,
  logs,
  daemon,
  audit,
  backup,
  restore,
  database,
  prune,
  status,
  doctor
] as const

const tree: Command.Command.Any = root.pipe(Command.withSubcommands(commands))

export const cli = root.pipe(Command.withSubcommands([...commands, completions(() => tree)]))
