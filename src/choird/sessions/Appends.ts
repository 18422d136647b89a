/** Appends as they happen, for readers that may be slow: those that wait for one of them have a limit, in number and in bytes. */
import { Effect, PubSub, Stream } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** An append that stored something. */
export interface Appended {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly events: ReadonlyArray<ChoirEvent>
  readonly state: SessionState
}

/** Appends that a slow reader may be behind before it loses the oldest, and the canonical bytes of their events. */
const APPENDS_BUFFERED_MAX = 256
export const APPENDS_BYTES_MAX = 8 * 1024 * 1024

export interface Appends {
  /** `bytes` are those of the append's events. */
  readonly publish: (appended: Appended, bytes: number) => Effect.Effect<void>
  readonly stream: Stream.Stream<Appended>
}

export const makeAppends: Effect.Effect<Appends> = Effect.gen(function* () {
  const held = PubSub.makeAtomicBounded<Appended>(APPENDS_BUFFERED_MAX)
  const appends = yield* PubSub.make({
    atomicPubSub: () => held,
    strategy: () => new PubSub.SlidingStrategy<Appended>()
  })
  /** Of the newest appends, those that are held among them. */
  const sizes: Array<number> = []
  const publish = (appended: Appended, bytes: number) =>
    Effect.suspend(() => {
      sizes.splice(0, sizes.length - held.size())
      let total = sizes.reduce((sum, size) => sum + size, bytes)
      while (total > APPENDS_BYTES_MAX && held.size() > 0) {
        held.slide()
        total -= sizes.shift() ?? 0
      }
      sizes.push(bytes)
      return PubSub.publish(appends, appended)
    })
  return { publish, stream: Stream.fromPubSub(appends) }
})
