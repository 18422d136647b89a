import { assert } from "@effect/vitest"
import { Clock, Effect, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"
import type { Caller } from "#schema/AgentApi.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { HELLO_GRACE_MS_MAX, SUPERSEDED_TOKENS_MAX, Tokens } from "#src/choird/sessions/Tokens.ts"
import { describeStores } from "../../support/engines.ts"
import { makeRandom } from "../../support/history.ts"
import { BINDINGS, newAgent, stores } from "../../support/stores.ts"

const newSession = Effect.flatMap(SessionStore, (sessions) => sessions.create(newAgent(), BINDINGS, "0000000"))

/** The standing of whoever shows a token, some time from now. */
const standing = (token: Redacted.Redacted, later_ms = 0) =>
  Effect.gen(function* () {
    const tokens = yield* Tokens
    const clock = yield* Clock.Clock
    const nanos = (yield* Clock.monotonicTimeNanos) + BigInt(later_ms) * 1_000_000n
    const later: Clock.Clock = Object.assign(Object.create(clock), {
      monotonicTimeNanos: Effect.succeed(nanos),
      monotonicTimeNanosUnsafe: () => nanos
    })
    const found = yield* Effect.provideService(tokens.identify(token), Clock.Clock, later)
    return Option.match(found, { onNone: () => "unknown", onSome: ({ epoch, standing }) => `${standing} ${epoch}` })
  })

const callerOf = (token: Redacted.Redacted) =>
  Effect.flatMap(Tokens, ({ identify }) => Effect.map(identify(token), Option.getOrThrow))

describeStores("Tokens", (it) => {
  it.effect("swap a bootstrap token for a lease token, and let it be shown again for a minute (D12)", () =>
    Effect.gen(function* () {
      const tokens = yield* Tokens
      const { agent_id, session_id } = yield* newSession
      const bootstrap = yield* tokens.bootstrap(session_id, agent_id, 1)
      assert.strictEqual(yield* standing(bootstrap, 10 * HELLO_GRACE_MS_MAX), "bootstrap 1")
      const lease = yield* tokens.lease(yield* callerOf(bootstrap))
      assert.deepStrictEqual(yield* callerOf(lease), { session_id, agent_id, epoch: 1, standing: "current" })
      assert.strictEqual(yield* standing(bootstrap), "bootstrap 1")
      assert.strictEqual(yield* standing(bootstrap, HELLO_GRACE_MS_MAX + 5000), "unknown")

      const second = yield* tokens.lease(yield* callerOf(bootstrap))
      assert.strictEqual(yield* standing(lease), "unknown")
      assert.strictEqual(yield* standing(second), "current 1")
      yield* tokens.settle(yield* callerOf(second))
      assert.strictEqual(yield* standing(bootstrap), "unknown")
      assert.strictEqual(yield* standing(second), "current 1")
    }).pipe(Effect.provide(stores))
  )

  it.effect("supersede the tokens of an older epoch, which get nothing any more (E13)", () =>
    Effect.gen(function* () {
      const tokens = yield* Tokens
      const { agent_id, session_id } = yield* newSession
      const bootstrap = yield* tokens.bootstrap(session_id, agent_id, 1)
      const caller = yield* callerOf(bootstrap)
      const lease = yield* tokens.lease(caller)
      const next = yield* tokens.bootstrap(session_id, agent_id, 2)
      assert.strictEqual(yield* standing(bootstrap), "superseded 1")
      assert.strictEqual(yield* standing(lease), "superseded 1")
      assert.strictEqual(yield* standing(next), "bootstrap 2")

      // A request that was identified before the new epoch began.
      const stale = yield* tokens.lease(caller)
      yield* tokens.settle({ ...caller, standing: "current" })
      assert.strictEqual(yield* standing(stale), "unknown")
      assert.strictEqual(yield* standing(next), "bootstrap 2")

      for (let epoch = 3; epoch < 3 + SUPERSEDED_TOKENS_MAX; epoch++)
        yield* tokens.bootstrap(session_id, agent_id, epoch)
      assert.strictEqual(yield* standing(lease), "unknown")
      assert.strictEqual(yield* standing(next), "superseded 2")
      yield* tokens.revoke(session_id)
      assert.strictEqual(yield* standing(next), "unknown")
    }).pipe(Effect.provide(stores))
  )

  it.effect("are dead at once when revoked, also while they are being swapped (R29)", () =>
    Effect.gen(function* () {
      const tokens = yield* Tokens
      const { agent_id, session_id } = yield* newSession
      const bootstrap = yield* tokens.bootstrap(session_id, agent_id, 1)
      const caller = yield* callerOf(bootstrap)
      const [lease] = yield* Effect.all([tokens.lease(caller), tokens.revoke(session_id)], { concurrency: "unbounded" })
      assert.strictEqual(yield* standing(lease), "unknown")
      assert.strictEqual(yield* standing(bootstrap), "unknown")
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "know nobody by 10,000 tokens that differ from a valid one, and by the valid one until it is revoked (R29)",
    () =>
      Effect.gen(function* () {
        const tokens = yield* Tokens
        const { agent_id, session_id } = yield* newSession
        const lease = yield* tokens.lease(yield* callerOf(yield* tokens.bootstrap(session_id, agent_id, 1)))
        const text = Redacted.value(lease)
        const random = makeRandom(29)
        const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        for (let index = 0, tried = 0; tried < 10_000; index++) {
          const at = Math.floor(random() * text.length)
          const letter = letters[Math.floor(random() * letters.length)] ?? "A"
          const changed = [
            text.slice(0, at) + letter + text.slice(at + 1),
            text.slice(0, at),
            text + letter,
            text.slice(at) + text.slice(0, at)
          ][index % 4]
          if (changed === undefined || changed === text) continue
          tried += 1
          assert.isTrue(Option.isNone(yield* tokens.identify(Redacted.make(changed))))
        }
        assert.strictEqual(yield* standing(lease), "current 1")
        yield* tokens.revoke(session_id)
        assert.strictEqual(yield* standing(lease), "unknown")
      }).pipe(Effect.provide(stores))
  )

  it.effect("are stored as digests alone (R29)", () =>
    Effect.gen(function* () {
      const [tokens, sql] = [yield* Tokens, yield* SqlClient.SqlClient]
      const { agent_id, session_id } = yield* newSession
      const bootstrap = yield* tokens.bootstrap(session_id, agent_id, 1)
      const lease = yield* tokens.lease(yield* callerOf(bootstrap))
      const digest = (token: Redacted.Redacted) => createHash("sha256").update(Redacted.value(token)).digest("hex")
      const [row] = yield* sql`SELECT encode(bootstrap_hash, 'hex') AS bootstrap, encode(lease_hash, 'hex') AS lease
        FROM choir_control.sessions WHERE session_id = ${session_id}`
      assert.deepStrictEqual(row, { bootstrap: digest(bootstrap), lease: digest(lease) })
      assert.strictEqual(Buffer.from(Redacted.value(lease), "base64url").length, 32)
      assert.notInclude(JSON.stringify({ bootstrap, lease }), Redacted.value(lease))
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "survive a restart while their session is active, but a swapped bootstrap token gets no second grace (D15)",
    () =>
      Effect.gen(function* () {
        const [swapped, lease, unused] = yield* Effect.gen(function* () {
          const tokens = yield* Tokens
          const [a, b] = [yield* newSession, yield* newSession]
          const swapped = yield* tokens.bootstrap(a.session_id, a.agent_id, 1)
          const lease = yield* tokens.lease(yield* callerOf(swapped))
          return [swapped, lease, yield* tokens.bootstrap(b.session_id, b.agent_id, 1)] as const
        }).pipe(Effect.provide(stores))
        yield* Effect.gen(function* () {
          assert.strictEqual(yield* standing(swapped), "unknown")
          assert.strictEqual(yield* standing(lease), "current 1")
          assert.strictEqual(yield* standing(unused), "bootstrap 1")
          const nobody: Caller = yield* callerOf(lease)
          yield* (yield* Tokens).revoke(nobody.session_id)
          assert.strictEqual(yield* standing(lease), "unknown")
        }).pipe(Effect.provide(stores))
      })
  )
})
