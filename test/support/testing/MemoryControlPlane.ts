/**
 * choird as an agent sees it, in memory. It checks what choird checks: epochs, revisions, chain and fold; and it can be away, or
 * lose what an agent sends, so that crashes are tried without processes.
 */
import { Deferred, Effect, Layer, PubSub, Result, Schema, Stream } from "effect"
import type { Draft, HeartbeatReply, Snapshot } from "#schema/AgentApi.ts"
import type { AskedApproval, ConfirmTool, Resolution } from "#schema/Approval.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { ChoirEvent, isKnownEvent } from "#schema/Event.ts"
import { ApprovalId, type CallId, InboxId, ResourceName, SessionId } from "#schema/Ids.ts"
import type { Signal, UserMessage } from "#schema/Signal.ts"
import type { Summary } from "#schema/Summary.ts"
import { type ApprovalRequest, ControlPlane } from "#src/agent/control/ControlPlane.ts"
import type { Recovery } from "#src/agent/session/sessionLayers.ts"
import { Denied, Unreachable } from "#src/agent/control/verbAnswer.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { oldestNamed } from "#src/shared/session/namedRevs.ts"
import { encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { APPEND_RETRY_MS } from "#src/choird/sessions/EventStore.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

/** The one session that a control plane in memory has. */
export const SESSION = SessionId.make("0123456789abcdef")

/** As choird reads a request. */
const decodePatches = Schema.decodeUnknownSync(Schema.Array(ChoirEvent), { onExcessProperty: "error" })

/** Events after which the plane writes the state down; few, so that most recoveries begin with a snapshot. */
const SNAPSHOT_EVENTS = 20

/** What a person was asked, how it stands, and how often the agent asked for it. */
export interface MemoryApproval {
  readonly approval_id: ApprovalId
  readonly call_id: CallId
  /** The payload, as that of a `confirm_tool`. */
  readonly call: ConfirmTool
  readonly request: ApprovalRequest
  status: "pending" | Resolution
  reason?: string
  requests: number
}

/** Outlives agents, as choird does: give each life of an agent the same one. */
export interface MemoryControlPlane {
  /** What is acknowledged: the committed events that would survive a crash of the agent, in order. */
  readonly events: ReadonlyArray<ChoirEvent>
  /** Their fold. */
  state(): SessionState
  /** What INIT_HELLO would answer an agent of this epoch: the newest snapshot, and all events from the oldest that it names. */
  recovery(epoch: number): Recovery
  /** Sends a signal to the agent, and again to its next lives until an event answers it. */
  push(signal: Signal): Effect.Effect<void>
  /** Sends a user's message and answers its inbox id, from 1. */
  say(text: string, attachments?: UserMessage["attachments"], speak?: boolean): Effect.Effect<InboxId>
  /** What edge's model was seen to write, in order. */
  readonly drafts: ReadonlyArray<Draft>
  /** What a person was asked, in order. */
  readonly approvals: ReadonlyArray<MemoryApproval>
  /** A person decides, and the agent is told. */
  decide(approval_id: ApprovalId, status: Resolution, reason?: string): Effect.Effect<void>
  /** What the agent is told from here on when it asks for the whole configuration. */
  configure(config: AgentConfig): void
  /** Waits until acknowledged events fit. */
  until(fits: (events: ReadonlyArray<ChoirEvent>, state: SessionState) => boolean): Effect.Effect<void>
  /** Takes no heartbeat while the effect runs. */
  away<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R>
  /** From here on nothing of the running agent arrives and it gets no answer, until the next one starts. */
  cutOff(): void
  /** Stores until a revision is reached, whose reply is lost already; waits for that. */
  cutOffAt(rev: number): Effect.Effect<void>
  /** What the agents summed up when they said goodbye, in order; `undefined` where one gave nothing. */
  readonly summaries: ReadonlyArray<Summary | undefined>
  /** Why the agent said goodbye, once choird had everything. */
  readonly terminated: Deferred.Deferred<string>
  /** What an agent of this epoch speaks to; agents of earlier epochs are fenced from then on. */
  layer(epoch: number): Layer.Layer<ControlPlane>
}

/** A control plane without events. */
export const makeMemoryControlPlane: Effect.Effect<MemoryControlPlane> = Effect.gen(function* () {
  const events: Array<ChoirEvent> = []
  const inbox: Array<Signal> = []
  const pushes = yield* PubSub.unbounded<Signal>()
  const looks = new Set<() => void>()
  const approvals: Array<MemoryApproval> = []
  const heard = new Set<ApprovalId>()
  const terminated = yield* Deferred.make<string>()
  const drafts: Array<Draft> = []
  const summaries: Array<Summary | undefined> = []
  // Told again at each connect until the goodbye, as choird does.
  let stop: Signal | undefined
  let state = initialState
  let hash: Uint8Array = genesis(SESSION)
  const hashes: Array<string> = [hex(hash)]
  let snapshot: Snapshot | undefined
  let current = 0
  let present = true
  let configured: AgentConfig | undefined
  let deafFrom = Number.POSITIVE_INFINITY
  const isDeaf = () => events.length >= deafFrom
  let messages = 0

  const snapshotNow = (): Snapshot => {
    const { rev } = state
    const text = Result.getOrThrowWith(encodeState(state), (reason) => new Error(reason))
    const after = oldestNamed(state) - 1
    const tail_after = { rev: after, hash: hashes[after] ?? "" }
    return { rev, hash: hex(hash), fold_version: FOLD_VERSION, state: JSON.parse(text), tail_after }
  }
  const store = (patches: ReadonlyArray<ChoirEvent>) => {
    const text = JSON.stringify(patches)
    if (Buffer.byteLength(text) > BODY_BYTES_MAX) throw new Error("the patches fit no request")
    decodePatches(JSON.parse(text))
    const folded = foldAll(state, patches)
    if (Result.isFailure(folded)) throw new Error(`refused: ${folded.failure.reason}`)
    for (const event of patches) {
      hash = chainEvent(hash, event).hash
      hashes.push(hex(hash))
    }
    events.push(...patches)
    state = folded.success
    if (state.rev - (snapshot?.rev ?? 0) >= SNAPSHOT_EVENTS) snapshot = snapshotNow()
    for (const look of looks) look()
  }
  const unanswered = () =>
    inbox.filter(
      (signal) =>
        (signal.type !== "Stop" || signal === stop) &&
        !("inbox_id" in signal && BigInt(signal.inbox_id) <= state.last_inbox_id) &&
        !("approval_id" in signal && heard.has(signal.approval_id)) &&
        !("signal_id" in signal && state.signals.includes(signal.signal_id))
    )
  const askedCalls = (isConfirmation: boolean) =>
    [state.edge, ...state.cores.values()].flatMap(({ calls }) =>
      calls.filter(({ confirm, stage }) =>
        isConfirmation ? stage === "requested" && confirm !== undefined : stage === "committed"
      )
    )
  /** As choird: once for each call that waits for a person, or proposes something, in the log that is acknowledged. */
  const approve = (request: ApprovalRequest): Effect.Effect<AskedApproval, Denied> =>
    Effect.suspend(() => {
      const { call_id, request_type } = request
      const call = request.payload as unknown as ConfirmTool
      let found = approvals.find((other) => other.call_id === call_id)
      if (found === undefined && !askedCalls(request_type === "confirm_tool").some((open) => open.call_id === call_id))
        return Effect.fail(new Denied({ verb: "REQUEST_APPROVAL", type: "NOT_OPEN", reason: "no such call" }))
      if (found === undefined) {
        const approval_id = ApprovalId.make(String(approvals.length + 1))
        found = { approval_id, call_id, call, request, status: "pending", requests: 0 }
        approvals.push(found)
      }
      found.requests++
      const { approval_id, reason, status } = found
      if (status !== "pending") heard.add(approval_id)
      for (const look of looks) look()
      return Effect.succeed({ approval_id, status, ...(reason === undefined ? {} : { reason }) })
    })
  const plane: MemoryControlPlane = {
    approvals,
    decide: (approval_id, status, reason) =>
      Effect.suspend(() => {
        const found = approvals.find((other) => other.approval_id === approval_id)
        if (found?.status === "pending") {
          found.status = status
          if (reason !== undefined) found.reason = reason
        }
        return plane.push({
          type: "ApprovalResolved",
          approval_id,
          status: found?.status === status ? status : "expired"
        })
      }),
    events,
    state: () => state,
    terminated,
    drafts,
    summaries,
    recovery: (epoch) => ({
      epoch,
      status: events.length === 0 ? "fresh" : "resumed",
      ...(snapshot === undefined ? {} : { snapshot }),
      tail_events: events.slice(snapshot?.tail_after.rev ?? 0),
      tail_more: false
    }),
    cutOff: () => {
      deafFrom = 0
    },
    cutOffAt: (rev) =>
      Effect.suspend(() => {
        deafFrom = rev
        return plane.until(isDeaf)
      }),
    push: (signal) =>
      Effect.suspend(() => {
        inbox.push(signal)
        if (signal.type === "Stop") stop = signal
        return Effect.asVoid(PubSub.publish(pushes, signal))
      }),
    say: (text, attachments = [], speak = false) =>
      Effect.suspend(() => {
        const inbox_id = InboxId.make(String(++messages))
        const dm = ResourceName.make("me")
        return Effect.as(
          plane.push({
            type: "UserMessage",
            inbox_id,
            dm,
            text,
            attachments,
            created_at: "",
            ...(speak ? { speak } : {})
          }),
          inbox_id
        )
      }),
    until: (fits) =>
      Effect.suspend(() => {
        if (fits(events, state)) return Effect.void
        const reached = Deferred.makeUnsafe<void>()
        const look = () => {
          if (fits(events, state)) Deferred.doneUnsafe(reached, Effect.void)
        }
        looks.add(look)
        return Effect.ensuring(
          Deferred.await(reached),
          Effect.sync(() => looks.delete(look))
        )
      }),
    configure: (config) => {
      configured = config
    },
    away: (effect) =>
      Effect.suspend(() => {
        present = false
        return Effect.ensuring(
          effect,
          Effect.sync(() => {
            present = true
          })
        )
      }),
    layer: (epoch) => {
      current = epoch
      deafFrom = Number.POSITIVE_INFINITY
      return Layer.succeed(
        ControlPlane,
        ControlPlane.of({
          hello: () => Effect.die("whoever starts the agent takes over its `recovery`"),
          secrets: () => Effect.succeed({ secrets: new Map(), unbound: new Set(), unset: new Set() }),
          config: (config_version) =>
            Effect.sync(() =>
              config_version === 0 && configured !== undefined
                ? { config_version: 1, config: configured }
                : { config_version }
            ),
          approval: (request) =>
            Effect.suspend((): Effect.Effect<AskedApproval, Denied | Unreachable> => {
              if (isDeaf()) return Effect.never
              return present
                ? approve(request)
                : Effect.fail(new Unreachable({ verb: "REQUEST_APPROVAL", reason: "choird is away" }))
            }),
          execute: ({ tool_name }) =>
            Effect.fail(
              new Denied({
                verb: "EXECUTE_HOST_TOOL",
                type: "NOT_AVAILABLE",
                reason: `there is no host tool ${tool_name}`
              })
            ),
          report: ({ draft }) => Effect.sync(() => void (draft === undefined || drafts.push(draft))),
          terminate: ({ final_rev, reason, summary }) =>
            Effect.suspend(() => {
              if (isDeaf()) return Effect.never
              if (final_rev !== events.length)
                return Effect.fail(new Denied({ verb: "TERMINATE_SELF", type: "NOT_FLUSHED", reason: "" }))
              summaries.push(summary)
              stop = undefined
              return Effect.asVoid(Deferred.succeed(terminated, reason))
            }),
          heartbeat: ({ base_rev, hash_new, patches }) =>
            Effect.suspend((): Effect.Effect<HeartbeatReply> => {
              if (isDeaf()) return Effect.never
              const reply = { ack_rev: events.length, config_version_latest: 1 }
              if (epoch !== current) return Effect.succeed({ ...reply, action: "FENCED" })
              if (!present) return Effect.succeed({ ...reply, action: "BACKOFF", retry_after_ms: APPEND_RETRY_MS })
              if (base_rev !== events.length)
                return Effect.succeed({ ...reply, action: "RESEND_FROM", resend_from: events.length + 1 })
              store(patches.filter((event) => isKnownEvent(event)))
              if (hex(hash) !== hash_new) throw new Error("the chain differs")
              return isDeaf() ? Effect.never : Effect.succeed({ ...reply, ack_rev: events.length, action: "OK" })
            }),
          signals: Stream.unwrap(
            Effect.map(PubSub.subscribe(pushes), (subscription) =>
              Stream.concat(Stream.fromIterable(unanswered()), Stream.fromSubscription(subscription)).pipe(
                Stream.map((signal) => ({ id: undefined, signal }))
              )
            )
          )
        })
      )
    }
  }
  return plane
})
