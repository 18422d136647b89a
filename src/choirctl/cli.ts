/** The command tree, and the shell completions made of it. */
import { Effect } from "effect"
import { Argument, Command, Completions } from "effect/cli"
import type { Host } from "#src/choirctl/terminal/Host.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

/** The services of a command. Files, programs and the terminal are not among them: work on the host gets those (`onHost`). */
type Given = Command.CommandContext<"choirctl"> | Host | Screen

/** A command as the overview lists it, and its definition with all that it imports. */
const command = <const Name extends string, Input, ContextInput, E>(
  name: Name,
  description: string,
  load: () => Promise<Command.Command<Name, Input, ContextInput, E, Given>>
) => ({
  name,
  listed: Command.make(name).pipe(Command.withDescription(description)),
  defined: Effect.map(Effect.promise(load), Command.withDescription(description))
})

const COMMANDS = [
  command(
    "init",
    "Set up a home: folders, config.json, secrets.json and the global repository",
    async () => (await import("#src/choirctl/commands/init.ts")).init
  ),
  command(
    "agent",
    "Set up, build, start, monitor and stop agents",
    async () => (await import("#src/choirctl/commands/agent.ts")).agent
  ),
  command(
    "chat",
    "Talk with an agent; without a terminal each line of standard input is a message",
    async () => (await import("#src/choirctl/commands/chat.ts")).chat
  ),
  command(
    "session",
    "Read, verify, steer, export, archive and delete sessions",
    async () => (await import("#src/choirctl/commands/session.ts")).session
  ),
  command(
    "memory",
    "Read, correct and forget what agents remember",
    async () => (await import("#src/choirctl/commands/memory.ts")).memory
  ),
  command(
    "plan",
    "Set, list, pause and remove reminders",
    async () => (await import("#src/choirctl/commands/plan.ts")).plan
  ),
  command(
    "approval",
    "List and decide requests that need a person's approval",
    async () => (await import("#src/choirctl/commands/approval.ts")).approval
  ),
  command(
    "grant",
    "List and revoke standing grants",
    async () => (await import("#src/choirctl/commands/grant.ts")).grant
  ),
  command(
    "model",
    "Add, show, switch and test the models of agents",
    async () => (await import("#src/choirctl/commands/model.ts")).models
  ),
  command(
    "voice",
    "List, show and switch agents' voices",
    async () => (await import("#src/choirctl/commands/voice.ts")).voice
  ),
  command(
    "skill",
    "List, show, check, add, export and run agents' skills",
    async () => (await import("#src/choirctl/commands/skill.ts")).skill
  ),
  command(
    "profile",
    "List and show agents' job profiles",
    async () => (await import("#src/choirctl/commands/profile.ts")).profile
  ),
  command("tool", "List and try agents' tools", async () => (await import("#src/choirctl/commands/tool.ts")).tool),
  command(
    "secret",
    "Manage the secrets that config.json refers to by name",
    async () => (await import("#src/choirctl/commands/secret.ts")).secret
  ),
  command(
    "gateway",
    "Add, list and remove the bots that people talk to",
    async () => (await import("#src/choirctl/commands/gateway.ts")).gateway
  ),
  command(
    "dm",
    "Add, list and remove the people who may talk to agents",
    async () => (await import("#src/choirctl/commands/dm.ts")).dm
  ),
  command(
    "workspace",
    "List, reset and trust the folders that agents work in",
    async () => (await import("#src/choirctl/commands/workspace.ts")).workspace
  ),
  command(
    "config",
    "Check, load, compare, apply and show the configuration",
    async () => (await import("#src/choirctl/commands/config.ts")).config
  ),
  command(
    "logs",
    "Print a log: readable and followed on a terminal, JSON lines elsewhere",
    async () => (await import("#src/choirctl/commands/logs.ts")).logs
  ),
  command(
    "daemon",
    "Run choird in the background",
    async () => (await import("#src/choirctl/commands/daemon.ts")).daemon
  ),
  command(
    "audit",
    "List refused requests and changes from the audit log, newest last",
    async () => (await import("#src/choirctl/commands/audit.ts")).audit
  ),
  command(
    "backup",
    "Back up the whole home to one file, whether choird is running or not",
    async () => (await import("#src/choirctl/commands/backup.ts")).backup
  ),
  command(
    "restore",
    "Restore a home from its backup, at the same path or another; choird must not be running there",
    async () => (await import("#src/choirctl/commands/restore.ts")).restore
  ),
  command(
    "db",
    "Migrate, back up and restore the database",
    async () => (await import("#src/choirctl/commands/db.ts")).database
  ),
  command(
    "home",
    "Accept a home that was moved or copied",
    async () => (await import("#src/choirctl/commands/home.ts")).home
  ),
  command(
    "prune",
    "Remove data older than the retention settings in config.json; choird also does this by itself",
    async () => (await import("#src/choirctl/commands/prune.ts")).prune
  ),
  command(
    "status",
    "Show choird, its database, runtime, gateways and agents",
    async () => (await import("#src/choirctl/commands/status.ts")).status
  ),
  command(
    "doctor",
    "Check that this host has what Choir needs, and print how to fix each problem",
    async () => (await import("#src/choirctl/commands/doctor.ts")).doctor
  )
] as const

const COMPLETIONS = "completions"

const whole: Effect.Effect<Command.Command.Any> = Effect.suspend(() => cli([COMPLETIONS]))

const completions = Command.make(
  COMPLETIONS,
  {
    shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(
      Argument.withDescription("Shell that the script is for")
    )
  },
  Effect.fnUntraced(function* ({ shell }) {
    const screen = yield* Screen
    const script = Completions.generate("choirctl", shell, Completions.fromCommand(yield* whole))
    // Effect's header names a flag that only a program without this command has.
    yield* screen.print(script.replaceAll("choirctl --completions", "choirctl completions").trimEnd())
  })
).pipe(
  Command.withDescription("Print a shell completion script"),
  Command.withExamples([{ command: "choirctl completions bash > ~/.local/share/bash-completion/completions/choirctl" }])
)

/**
 * The tree for these arguments. Only the commands that they name are defined, since defining all of them takes longer than most calls
 * do; the others are listed. An argument that happens to be a command's name costs time and changes nothing.
 */
export const cli = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const named = new Set(args)
  const isWhole = named.has(COMPLETIONS)
  const commands = yield* Effect.all(
    COMMANDS.map(({ defined, listed, name }) => (isWhole || named.has(name) ? defined : Effect.succeed(listed)))
  )
  return root.pipe(Command.withSubcommands([...commands, completions]))
})
