/** A choird of heartbeats alone, for what an agent sends and how it obeys. */
import { Clock, Effect, Layer, Redacted, Stream } from "effect"
import type { Heartbeat, HeartbeatReply } from "#schema/AgentApi.ts"
import type { SecretName } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { type Denied, Unreachable } from "#src/agent/control/verbAnswer.ts"
import { SESSION } from "./testing/MemoryControlPlane.ts"
import { type agentConfig, settingsOf } from "./testing/TestAgent.ts"

export type Answer = Effect.Effect<HeartbeatReply, Unreachable | Denied>
export interface Beat extends Heartbeat {
  readonly at: number
  /** How long the agent waits for the answer. */
  readonly timeout_ms: number | undefined
}

export const INTERVAL_MS = 5000
export const reply = (ack_rev: number, more: Partial<HeartbeatReply> = {}): HeartbeatReply => ({
  ack_rev,
  action: "OK",
  config_version_latest: 1,
  ...more
})
export const unreachable = new Unreachable({ verb: "HEARTBEAT", reason: "cut" })

/** choird as the tests want it: it keeps what was sent, and answers as told, by default with what it stored. */
export const makeHeartbeats = () => {
  const beats: Array<Beat> = []
  const scripted: Array<(beat: Beat) => Answer> = []
  const asked: Array<SecretName> = []
  let stored = 0
  const store = ({ base_rev, new_rev }: Heartbeat): HeartbeatReply => {
    if (base_rev > stored) return reply(stored, { action: "RESEND_FROM", resend_from: stored + 1 })
    stored = Math.max(stored, new_rev)
    return reply(stored)
  }
  let config: Effect.Effect<{ config_version: number; config?: ReturnType<typeof agentConfig> }, Unreachable> =
    Effect.succeed({ config_version: 1 })
  const layer = Layer.succeed(
    ControlPlane,
    ControlPlane.of({
      hello: () => Effect.die("unused"),
      secrets: (names) =>
        Effect.sync(() => {
          asked.push(...names)
          const secrets = new Map(names.map((name) => [name, Redacted.make(`of ${name}`)]))
          return { secrets, unbound: new Set(), unset: new Set() }
        }),
      terminate: () => Effect.void,
      report: () => Effect.void,
      config: () => config,
      approval: () => Effect.die("unused"),
      execute: () => Effect.die("unused"),
      signals: Stream.never,
      heartbeat: (request, timeout_ms) =>
        Effect.flatMap(Clock.currentTimeMillis, (at) => {
          const beat = { ...request, at, timeout_ms }
          beats.push(beat)
          const next = scripted.shift()
          return next === undefined ? Effect.succeed(store(beat)) : next(beat)
        })
    })
  )
  return {
    beats,
    store,
    stored: () => stored,
    answer: (...answers: ReadonlyArray<(beat: Beat) => Answer>) => void scripted.push(...answers),
    asked,
    configure: (next: typeof config) => {
      config = next
    },
    layer
  }
}

export const replicating = (choird: Pick<ReturnType<typeof makeHeartbeats>, "layer">, settings = settingsOf(1)) => {
  const base = Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settings), choird.layer)
  return Replication.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(Arbiter.layer, SecretStore.layer)),
    Layer.provideMerge(base)
  )
}
