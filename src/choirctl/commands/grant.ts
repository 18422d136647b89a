/** choirctl grant: what agents may do without asking, and its revocation. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { GrantId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { onlyAgent } from "#src/choirctl/commands/flags/arguments.ts"
import type { GrantSummary } from "#schema/Grant.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"

/** Characters of an instant to the minute. */
const MINUTE_CHARS = 16

const minute = (at: string): string => at.slice(0, MINUTE_CHARS).replace("T", " ")

/** Standing grants for people. */
const grantTable = (rows: ReadonlyArray<GrantSummary>, color: boolean): string =>
  rows.length === 0
    ? "no standing grants"
    : table(
        ["GRANT", "AGENT", "FOR", "USED", "UNTIL (UTC)", "COVERS"],
        rows.map(({ agent_id, grant_id, job_name, revoked_at, until, uses, uses_max, words }) => [
          grant_id,
          agent_id,
          job_name ?? "the agent",
          `${uses} of ${uses_max}`,
          revoked_at === null ? minute(until) : `revoked ${minute(revoked_at)}`,
          safeLine(words)
        ]),
        color
      )

const revokedLine = ({ agent_id, grant_id, words }: GrantSummary): string =>
  `revoked grant ${grant_id} of ${agent_id}: ${safeLine(words)}`

const list = Command.make(
  "list",
  {
    agent_id: onlyAgent("grants"),
    all: Flag.Boolean("all").pipe(
      Flag.withDescription("Include grants that were revoked, used up or have expired"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ agent_id, all }) {
    const query = {
      ...(Option.isSome(agent_id) ? { agent_id: agent_id.value } : {}),
      ...(all ? { all: "true" as const } : {})
    }
    yield* print(yield* ask("approvals", (choird) => choird.grants({ query })), grantTable)
  })
).pipe(
  Command.withDescription("List the standing grants: calls that agents make without asking"),
  Command.withExamples([{ command: "choirctl grant list helper" }])
)

const revoke = Command.make(
  "revoke",
  {
    id: Argument.String("grant-id").pipe(
      Argument.withDescription("Grant id from choirctl grant list"),
      Argument.withSchema(GrantId)
    )
  },
  Effect.fnUntraced(function* ({ id }) {
    yield* print(yield* ask("approvals", (choird) => choird.revoke({ params: { id } })), revokedLine)
  })
).pipe(
  Command.withDescription("Revoke a standing grant; the agent must ask again from its next call"),
  Command.withExamples([{ command: "choirctl grant revoke 3" }])
)

export const grant = Command.make("grant").pipe(Command.withSubcommands([list, revoke]))
