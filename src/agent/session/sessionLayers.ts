/** The layers of a session, the same for the agent's program, the simulation and tests; the parts around it differ. */
import { Effect, Layer, type Redacted, Result } from "effect"
import type { InitHello, InitHelloReply, Snapshot } from "#schema/AgentApi.ts"
import type { SecretName } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, Unfit } from "#src/agent/arbiter/Arbiter.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { Recollection } from "#src/agent/memory/Recollection.ts"
import { Confirmations } from "#src/agent/calls/Confirmations.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { LockManager } from "#src/agent/calls/LockManager.ts"
import { Mailbox } from "./Mailbox.ts"
import { Drafts } from "#src/agent/model/Drafts.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { SkillJudge } from "#src/agent/calls/SkillJudge.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { TurnStops } from "./TurnStops.ts"
import { genesis, hex } from "#src/shared/events/hashChain.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { decodeState } from "#src/shared/session/snapshot.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"

/** The part of INIT_HELLO's answer that a recovery is made of. */
export type Recovery = Pick<InitHelloReply, "epoch" | "status" | "snapshot" | "tail_events" | "tail_more">

/** Further pages are asked for with the same introduction. */
const pages = Effect.fnUntraced(function* (
  introduced: InitHello,
  first: Pick<Recovery, "tail_events" | "tail_more"> | undefined
) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const plane = yield* ControlPlane
  let page = first ?? (yield* plane.hello({ ...introduced, tail_from: 1 }))
  yield* arbiter.restore(page.tail_events)
  while (page.tail_more) {
    page = yield* plane.hello({ ...introduced, tail_from: log.head() + 1 })
    yield* arbiter.restore(page.tail_events)
  }
})

/** Continues from choird's fold; the tail has to lead to where it was made. */
const fromSnapshot = Effect.fnUntraced(function* (
  { fold_version, hash, rev, state, tail_after }: Snapshot,
  introduced: InitHello,
  first: Recovery
) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const decoded = decodeState(rev, fold_version, state)
  if (Result.isFailure(decoded)) return yield* new Unfit({ rev, reason: decoded.failure })
  if (tail_after.rev > rev) return yield* new Unfit({ rev, reason: `its tail begins after ${tail_after.rev}` })
  yield* arbiter.begin({ state: decoded.success, at: { rev, hash }, after: tail_after })
  yield* pages(introduced, first)
  if (log.head() < rev) return yield* new Unfit({ rev, reason: `its tail ends at ${log.head()}` })
})

/** `first` is the answer to `introduced`. A snapshot that does not fit is left, and the whole log is folded instead. */
export const resumeSession = Effect.fnUntraced(function* (introduced: InitHello, first: Recovery) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const { epoch, snapshot, status } = first
  const whole = Effect.fnUntraced(function* (page: Recovery | undefined) {
    const nothing = { rev: 0, hash: hex(genesis(log.session_id)) }
    yield* arbiter.begin({ state: initialState, at: nothing, after: nothing })
    yield* pages(introduced, page)
  })
  // The whole log folded once already, when choird stored it, so that a refusal is a defect.
  const recovered =
    snapshot === undefined
      ? whole(first)
      : Effect.catchTag(fromSnapshot(snapshot, introduced, first), "Unfit", ({ message }) =>
          Effect.andThen(Effect.logWarning(`the snapshot is not used: ${message}`), whole(undefined))
        )
  yield* Effect.catchTag(recovered, "Unfit", Effect.die)
  const since = snapshot === undefined ? "" : `, from a snapshot at ${snapshot.rev}`
  yield* Effect.logInfo(`epoch ${epoch} ${status} at revision ${log.head()}${since}`)
})

/** A session as choird has it by its answer to `introduced`: the log, the settings, the secrets, and what orders its calls. */
export const layerRecovered = <E, R>(
  introduced: InitHello,
  first: InitHelloReply,
  values: ReadonlyMap<SecretName, Redacted.Redacted>,
  skills: Layer.Layer<never, E, R>
) => {
  const { session_id } = introduced
  const { config, config_version, epoch, resource_bindings } = first
  const settings = AgentSettings.layer({ session_id, epoch, resource_bindings, config_version, config })
  const secrets = Layer.effectDiscard(Effect.flatMap(SecretStore, (store) => store.replaceAll(values))).pipe(
    Layer.provideMerge(SecretStore.layer)
  )
  return Layer.effectDiscard(resumeSession(introduced, first)).pipe(
    Layer.provideMerge(Arbiter.layer),
    Layer.provideMerge(
      Layer.mergeAll(EventLog.layer(session_id), settings, secrets, LockManager.layer, Mailbox.layer, skills)
    )
  )
}

/** The model calls of its lanes, with what they ask people, over a session and the guards of its calls. */
export const layerModels = <A, E, R>(guards: Layer.Layer<A, E, R>) =>
  Layer.mergeAll(Compactor.layer, SkillJudge.layer).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        Confirmations.layer,
        Layer.provide(ModelCalls.layer, Drafts.layer),
        Recollection.layer,
        TurnStops.layer
      )
    ),
    Layer.provideMerge(guards)
  )
