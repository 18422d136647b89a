/** The whole command tree. */
import { Command } from "effect/cli"
import { agent } from "./commands/agent.ts"
import { approval } from "./commands/approval.ts"
import { audit } from "./commands/audit.ts"
import { backup } from "./commands/backup.ts"
import { chat } from "./commands/chat.ts"
import { completions } from "./commands/completions.ts"
import { config } from "./commands/config.ts"
import { daemon } from "./commands/daemon.ts"
import { database } from "./commands/db.ts"
import { doctor } from "./commands/doctor.ts"
import { init } from "./commands/init.ts"
import { logs } from "./commands/logs.ts"
import { models } from "./commands/model.ts"
import { prune } from "./commands/prune.ts"
import { restore } from "./commands/restore.ts"
import { secret } from "./commands/secret.ts"
import { session } from "./commands/session.ts"
import { skill } from "./commands/skill.ts"
import { status } from "./commands/status.ts"
import { tool } from "./commands/tool.ts"
import { workspace } from "./commands/workspace.ts"
import { root } from "#src/choirctl/terminal/root.ts"

const commands = [
  init,
  agent,
  chat,
  session,
  approval,
  models,
  skill,
  tool,
  secret,
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
