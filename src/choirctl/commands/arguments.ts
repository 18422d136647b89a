/** Arguments that several commands take. */
import { Argument } from "effect/cli"
import { AgentId, SessionId } from "#schema/Ids.ts"

export const agentId = Argument.String("agent-id").pipe(
  Argument.withDescription("An agent of config.json"),
  Argument.withSchema(AgentId)
)

export const sessionId = Argument.String("session-id").pipe(
  Argument.withDescription("A session, as choirctl session list shows it"),
  Argument.withSchema(SessionId)
)

/** What a list is narrowed to. */
export const onlyAgent = (what: string) =>
  Argument.String("agent-id").pipe(
    Argument.withDescription(`Only this agent's ${what}`),
    Argument.withSchema(AgentId),
    Argument.optional
  )
