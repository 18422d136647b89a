/** choirctl audit: what was refused, and what changed who may do what (R77). */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { AgentId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { auditTable } from "#src/choirctl/render/audit.ts"
import { AUDIT_LISTED_MAX } from "#src/shared/limits.ts"

export const audit = Command.make(
  "audit",
  {
    last: Flag.Int("last").pipe(
      Flag.filter(
        (value) => value >= 0 && value <= AUDIT_LISTED_MAX,
        () => `--last is a whole number from 0 to ${AUDIT_LISTED_MAX}`
      ),
      Flag.withDescription("How many of the newest rows to print"),
      Flag.withDefault(100)
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Only what is about this agent"),
      Flag.withSchema(AgentId),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ agent, last }) {
    const query = { last, ...Option.match(agent, { onNone: () => ({}), onSome: (agent_id) => ({ agent_id }) }) }
    const rows = yield* ask("audit", (choird) => choird.list({ query }))
    yield* print(rows, auditTable)
  })
).pipe(
  Command.withDescription("List what was refused and what was changed, the newest last"),
  Command.withExamples([{ command: "choirctl audit --last 20 --agent agent-1" }])
)
