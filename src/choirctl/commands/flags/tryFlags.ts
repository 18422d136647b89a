/** The flags of what is tried without a session: the agent in whose place, and the input. */
import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import { AgentId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { usageError } from "#src/choirctl/terminal/failure.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { root } from "#src/choirctl/terminal/root.ts"

export const agentFlag = Flag.String("agent").pipe(
  Flag.withDescription("Agent whose image, models and accounts are used; optional if there is only one"),
  Flag.withMetavar("<agent-id>"),
  Flag.withSchema(AgentId),
  Flag.optional
)

export const inputFlag = (of: string) =>
  Flag.String("input").pipe(
    Flag.withDescription(`The ${of}'s input as JSON, or a file that holds it`),
    Flag.withMetavar("<json or file>"),
    Flag.optional
  )

/** How most commands name one of several agents. */
const byFlag = (ids: ReadonlyArray<AgentId>): string => ` with --agent: ${ids.join(", ")}`

/** The agent that is named, or the only one. `how` ends the advice on how one of several is named. */
export const agentOf = Effect.fnUntraced(function* (
  given: Option.Option<AgentId>,
  how: (ids: ReadonlyArray<AgentId>) => string = byFlag
) {
  if (Option.isSome(given)) return given.value
  const agents = yield* ask("agents", (choird) => choird.list())
  const [first, second] = agents
  if (first !== undefined && second === undefined) return first.agent_id
  if (first === undefined)
    return yield* usageError("there is no agent", onHome((yield* root).home, "choirctl agent init <agent-id>"))
  const ids = agents.map(({ agent_id }) => agent_id)
  return yield* usageError("there are several agents", `name one of them${how(ids)}`)
})
