/** Bootstrap and lease tokens (D12): 256 random bits each, of which only the SHA-256 is kept. */
import { Context, type Effect, type Option, type Redacted } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"

/** Issues, swaps and checks the tokens of agents. */
export class Tokens extends Context.Service<
  Tokens,
  {
    /** A single-use token for the environment of a new container; it makes every earlier token of the session superseded. */
    bootstrap(session_id: SessionId, agent_id: AgentId, epoch: number): Effect.Effect<Redacted.Redacted>
    /** A lease token for a caller that proved a bootstrap or lease token; it voids the lease token before. */
    lease(caller: Caller): Effect.Effect<Redacted.Redacted>
    /** Ends the 60 s grace in which a lost INIT_HELLO reply may be asked for again: called at the first other verb. */
    settle(caller: Caller): Effect.Effect<void>
    /** Who presents this token, compared in constant time; none for unknown, spent and revoked ones. */
    identify(token: Redacted.Redacted): Effect.Effect<Option.Option<Caller>>
    /** Voids every token of a session, at once. */
    revoke(session_id: SessionId): Effect.Effect<void>
  }
>()("choir/choird/Tokens") {}
