/** Arguments that several commands take. */
import { Argument } from "effect/cli"
import { Effect, Schema } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"

export const agentId = Argument.String("agent-id").pipe(
  Argument.withDescription("An agent of config.json"),
  Argument.withSchema(AgentId)
)

const SessionName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,39}$/u, {
    message: "a session is named by its id, the beginning of its id, or an agent, as choirctl session list shows them"
  })
)

export const sessionName = Argument.String("session").pipe(
  Argument.withDescription("A session's id, the beginning of one, or an agent, for its newest session"),
  Argument.withSchema(SessionName)
)

const isSessionId = Schema.is(SessionId)

/** The session that a name stands for. A whole id is not asked about. */
export const sessionOf = Effect.fnUntraced(function* (name: string) {
  if (isSessionId(name)) return name
  const { session_id } = yield* ask("retention", (choird) => choird.find({ params: { name } }))
  return session_id
})

/** What a list is narrowed to. */
export const onlyAgent = (what: string) =>
  Argument.String("agent-id").pipe(
    Argument.withDescription(`Only this agent's ${what}`),
    Argument.withSchema(AgentId),
    Argument.optional
  )
