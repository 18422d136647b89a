/** The programs of this installation that every container gets. */
import { Context, type Effect } from "effect"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"

export class InstalledPrograms extends Context.Service<
  InstalledPrograms,
  { readonly find: Effect.Effect<AgentPrograms, ProgramMissing> }
>()("choir/choird/InstalledPrograms") {}
