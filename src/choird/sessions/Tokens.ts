/** Bootstrap and lease tokens (D12): 256 random bits each, of which only the SHA-256 is kept. */
import { Context, Effect, Layer, Option, Redacted, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import type { Caller } from "#schema/AgentApi.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** The grace in which an agent may ask again for a lost INIT_HELLO reply with its bootstrap token (D12). */
export const HELLO_GRACE_MS_MAX = 60_000
/** Tokens of older epochs that choird still recognizes and answers as fenced, per session; older ones are unknown. */
export const SUPERSEDED_TOKENS_MAX = 16

/** Issues, swaps and checks the tokens of agents. */
export class Tokens extends Context.Service<
  Tokens,
  {
    /** A single-use token for the environment of a new container; it supersedes every earlier token of the session. */
    bootstrap(session_id: SessionId, agent_id: AgentId, epoch: number): Effect.Effect<Redacted.Redacted, DatabaseAway>
    /** A lease token for a caller with a valid bootstrap or lease token; it voids the previous lease token. */
    lease(caller: Caller): Effect.Effect<Redacted.Redacted, DatabaseAway>
    /** Ends the 60 s grace for a lost INIT_HELLO reply: called at the first other verb. */
    settle(caller: Caller): Effect.Effect<void, DatabaseAway>
    /** The caller that holds this token, compared in constant time; none for unknown, spent and revoked tokens. */
    identify(token: Redacted.Redacted): Effect.Effect<Option.Option<Caller>>
    /** Voids every token of a session at once. */
    revoke(session_id: SessionId): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/Tokens") {
  /** Knows the tokens of the sessions that were active when an earlier choird ended, so that their agents may flush (D15). */
  static readonly layer = Layer.effect(
    Tokens,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      const sessions = new Map<SessionId, SessionTokens>()
      for (const row of yield* stored) sessions.set(row.session_id, fromStored(row))
      // The columns and the memory change together, also with several callers.
      const changing = yield* Semaphore.make(1)

      const write = (session_id: SessionId, bootstrap: Buffer | undefined, lease: Buffer | undefined) =>
        onDatabase(
          inTransaction(sql`UPDATE choir_control.sessions
            SET bootstrap_hash = ${bootstrap ?? null}, lease_hash = ${lease ?? null} WHERE session_id = ${session_id}`)
        )

      /** Memory follows the row, so that a token which was not stored is never valid; nor is one that was revoked in the meantime. */
      const change = Effect.fnUntraced(function* (held: SessionTokens | undefined, next: SessionTokens) {
        yield* write(next.session_id, next.bootstrap?.digest, next.lease)
        if (sessions.get(next.session_id) === held) sessions.set(next.session_id, next)
      })

      const lease = Effect.fn("Tokens.lease")(function* (caller: Caller) {
        const { digest, token } = makeToken()
        const held = sessions.get(caller.session_id)
        // Superseded or revoked since it was identified: its new token opens nothing.
        if (held === undefined || held.epoch !== caller.epoch || caller.standing === "superseded") return token
        const spent_ms = held.bootstrap?.spent_ms ?? (yield* monotonicMs)
        const bootstrap = held.bootstrap === undefined ? undefined : { ...held.bootstrap, spent_ms }
        yield* change(held, { ...held, bootstrap, lease: digest })
        return token
      }, changing.withPermit)

      return Tokens.of({
        lease,
        bootstrap: Effect.fn("Tokens.bootstrap")(function* (session_id, agent_id, epoch) {
          const { digest, token } = makeToken()
          const held = sessions.get(session_id)
          yield* change(held, {
            session_id,
            agent_id,
            epoch,
            bootstrap: { digest, spent_ms: undefined },
            lease: undefined,
            superseded: superseded(held)
          })
          return token
        }, changing.withPermit),
        settle: Effect.fn("Tokens.settle")(function* (caller) {
          const held = sessions.get(caller.session_id)
          if (caller.standing !== "current" || held?.epoch !== caller.epoch || held.bootstrap === undefined) return
          yield* change(held, { ...held, bootstrap: undefined })
        }, changing.withPermit),
        identify: Effect.fn("Tokens.identify")(function* (token) {
          const now_ms = yield* monotonicMs
          return identify(sessions.values(), digestOf(Redacted.value(token)), now_ms)
        }),
        revoke: Effect.fn("Tokens.revoke")(function* (session_id) {
          // At once, also while the database stalls: the columns only matter to the next choird.
          sessions.delete(session_id)
          yield* changing.withPermit(
            Effect.suspend(() => (sessions.has(session_id) ? Effect.void : write(session_id, undefined, undefined)))
          )
        })
      })
    })
  )
}

interface SessionTokens {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly epoch: number
  /** `spent_ms` is when it was first swapped; the grace counts from there. */
  readonly bootstrap: { readonly digest: Buffer; readonly spent_ms: number | undefined } | undefined
  readonly lease: Buffer | undefined
  readonly superseded: ReadonlyArray<{ readonly digest: Buffer; readonly epoch: number }>
}

const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest()

const makeToken = () => {
  const token = randomBytes(32).toString("base64url")
  return { token: Redacted.make(token), digest: digestOf(token) }
}

const superseded = (held: SessionTokens | undefined): SessionTokens["superseded"] => {
  if (held === undefined) return []
  const digests = [held.bootstrap?.digest, held.lease].filter((digest) => digest !== undefined)
  return [...digests.map((digest) => ({ digest, epoch: held.epoch })), ...held.superseded].slice(
    0,
    SUPERSEDED_TOKENS_MAX
  )
}

/** Looks at every token there is, so that the time it takes says nothing about any of them. */
const identify = (all: Iterable<SessionTokens>, digest: Buffer, now_ms: number): Option.Option<Caller> => {
  let found: Caller | undefined
  const compare = (tokens: SessionTokens, other: Buffer | undefined, epoch: number, standing: Caller["standing"]) => {
    const { agent_id, session_id } = tokens
    if (other !== undefined && timingSafeEqual(other, digest)) found = { session_id, agent_id, epoch, standing }
  }
  for (const tokens of all) {
    const { bootstrap, epoch, lease } = tokens
    const live = bootstrap?.spent_ms === undefined || now_ms - bootstrap.spent_ms <= HELLO_GRACE_MS_MAX
    compare(tokens, live ? bootstrap?.digest : undefined, epoch, "bootstrap")
    compare(tokens, lease, epoch, "current")
    for (const old of tokens.superseded) compare(tokens, old.digest, old.epoch, "superseded")
  }
  return Option.fromUndefinedOr(found)
}

interface StoredTokens {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly epoch: number
  readonly bootstrap_hash: Uint8Array | null
  readonly lease_hash: Uint8Array | null
}

const stored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<StoredTokens>`SELECT session_id, agent_id, epoch, bootstrap_hash, lease_hash
    FROM choir_control.sessions
    WHERE status = 'active' AND (bootstrap_hash IS NOT NULL OR lease_hash IS NOT NULL)`
}).pipe(Effect.orDie)

/** A bootstrap token that was swapped already gets no second grace from a restart of choird. */
const fromStored = ({ agent_id, bootstrap_hash, epoch, lease_hash, session_id }: StoredTokens): SessionTokens => ({
  session_id,
  agent_id,
  epoch,
  bootstrap:
    bootstrap_hash === null || lease_hash !== null
      ? undefined
      : { digest: Buffer.from(bootstrap_hash), spent_ms: undefined },
  lease: lease_hash === null ? undefined : Buffer.from(lease_hash),
  superseded: []
})
