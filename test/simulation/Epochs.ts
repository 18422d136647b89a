/**
 * The run of the simulated agent: one epoch after the other, watched, fenced and ended by choird's own code (`Epoch.ts`,
 * `LiveEpochs.ts`, `decideRestart.ts`), over a database and a host in memory.
 */
import { Context, Deferred, Effect, Option, Redacted, type Scope, Stream } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { decideRestart } from "#src/choird/agents/decideRestart.ts"
import { BREAKER } from "#src/choird/agents/Breaker.ts"
import { type EpochPlan, runEpoch } from "#src/choird/agents/Epoch.ts"
import { LiveEpochs, type Liveness } from "#src/choird/agents/LiveEpochs.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Tokens as ChoirdTokens } from "#src/choird/sessions/Tokens.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { SessionTable } from "./Database.ts"
import type { Process } from "./Kernel.ts"
import type { Container, Machine } from "./Machine.ts"
import type { Server } from "./Network.ts"
import type { Seed } from "./Seed.ts"
import type { Tokens } from "./Tokens.ts"
import type { World } from "./World.ts"
import { RPC_RETRY_MS, RPC_TIMEOUT_MS } from "#src/agent/control/verbAnswer.ts"

/** A stored message wakes the run within it. */
const SUCCESSOR_LOOK_MS = 500

/** The life of choird that the run belongs to. */
export interface Host {
  readonly process: Process
  /** Whether what it writes would be committed. */
  readonly mayWrite: () => boolean
  readonly machine: Machine
  readonly tokens: Tokens
  readonly livenessBySession: Map<SessionId, Liveness>
  /** What a session's agent reaches. */
  server(session_id: SessionId): Server
  /** The agent is to be told to stop, until a time in ms since 1970; `undefined` once it has. */
  stopping(session_id: SessionId, until: number | undefined): void
  /** Whoever completes it stops the epoch that runs now. */
  stoppable(stop: Deferred.Deferred<void>): void
}

/**
 * An agent waits longer for each answer in a row that gets lost, so that what was lost before choird last heard of it counts, in ms before
 * that: the longest wait for an answer, the pause after it, and what a message is on its way.
 */
const SILENCE_BEGINS_MS = RPC_TIMEOUT_MS + 2 * RPC_RETRY_MS

export class Epochs {
  readonly #world: World
  readonly #host: Host
  readonly #draw: Seed
  /** Why the agent of the epoch that ends may have been silent. */
  #excuse: string | undefined

  constructor(world: World, host: Host) {
    this.#world = world
    this.#host = host
    this.#draw = world.draw(`epochs ${host.process.name}`)
  }

  /** Waits while the database is away. */
  readonly #patiently = Effect.suspend(() => {
    const { database, io, kernel } = this.#world
    const away: Effect.Effect<void> = Effect.suspend(() =>
      database.isAway(kernel.now) || io.meets("query") === "query-refused" || !this.#host.mayWrite()
        ? Effect.andThen(Effect.sleep(500), away)
        : Effect.void
    )
    return away
  })

  /** Only what an epoch uses of each service is here. */
  #services(): Context.Context<Exclude<Effect.Services<ReturnType<typeof runEpoch>>, Scope.Scope>> {
    const { database } = this.#world
    const logs = { follow: () => Effect.undefined }
    const runtime = {
      start: (spec: {
        readonly session_id: SessionId
        readonly epoch: number
        readonly bootstrap_token: Redacted.Redacted
      }) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const { bootstrap_token, epoch, session_id } = spec
            return this.#host.machine.launch(
              session_id,
              epoch,
              Redacted.value(bootstrap_token),
              this.#host.server(session_id)
            )
          }),
          (container) => this.#killed(container)
        ).pipe(
          Effect.map((container) => ({
            id: {},
            exit: this.#exited(container),
            condition: Effect.sync(() => (container.gone ? "gone" : "running")),
            kill: this.#killed(container),
            output: Stream.empty
          }))
        )
    }
    const sessions = {
      recordContainer: () => Effect.void,
      get: (session_id: SessionId) =>
        Effect.sync(() =>
          Option.map(Option.fromUndefinedOr(database.sessions.get(session_id)), (session) => this.#row(session))
        )
    }
    const signals = {
      stop: (session_id: SessionId, deadline_ms: number) =>
        Effect.sync(() => {
          this.#host.stopping(session_id, this.#world.kernel.now + deadline_ms)
        })
    }
    const sockets = { open: () => Effect.succeed({ dir: "" }) }
    const tokens = {
      bootstrap: (session_id: SessionId, _agent: string, epoch: number) =>
        Effect.sync(() => {
          this.#excuse = this.#excused(session_id)
          return Redacted.make(this.#host.tokens.bootstrap(session_id, epoch))
        }),
      revoke: (session_id: SessionId) => Effect.sync(() => this.#host.tokens.revoke(session_id))
    }
    return Context.make(LiveEpochs, this.#host.livenessBySession).pipe(
      Context.add(AgentSockets, sockets as unknown as AgentSockets["Service"]),
      Context.add(ContainerRuntime, runtime as unknown as ContainerRuntime["Service"]),
      Context.add(LogFiles, logs as unknown as LogFiles["Service"]),
      Context.add(SessionStore, sessions as unknown as SessionStore["Service"]),
      Context.add(Signals, signals as unknown as Signals["Service"]),
      Context.add(ChoirdTokens, tokens as unknown as ChoirdTokens["Service"])
    )
  }

  #exited(container: Container) {
    return Effect.callback<{ code: number | null; signal: string | null; reason: string }>((resume) => {
      this.#host.machine.onExit(container, () =>
        this.#world.kernel.post(this.#host.process, () => {
          const code = container.exit_code ?? null
          resume(
            Effect.succeed({
              code,
              signal: code === null ? "SIGKILL" : null,
              reason: code === null ? "signalled" : "exited"
            })
          )
        })
      )
    })
  }

  #killed(container: Container): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      this.#host.machine.kill(container, () => this.#world.kernel.post(this.#host.process, () => resume(Effect.void)))
    })
  }

  #row({ epoch, events, frozen_reason, session_id, status }: SessionTable) {
    return {
      session_id,
      agent_id: "sim",
      status,
      epoch,
      frozen_reason,
      last_rev: events.length
    } as unknown as EpochPlan["row"]
  }

  /** The run of the agent, from what the database knows on; it goes on for ever, since the operator starts the agent again. */
  run(): Effect.Effect<unknown> {
    const { database, invariants } = this.#world
    return Effect.gen({ self: this }, function* () {
      for (const container of this.#host.machine.containers) if (!container.gone) yield* this.#killed(container)
      yield* this.#patiently
      const known = database.latest()
      let session: SessionTable | undefined = known ?? database.create()
      if (known !== undefined && known.status !== "closed") this.#resume(known)
      if (known?.status === "closed") session = undefined
      let breaker = BREAKER
      let token: Redacted.Redacted | undefined
      for (;;) {
        session ??= yield* this.#successor()
        const end = yield* this.#epoch(session, token)
        yield* this.#patiently
        const now_ms = yield* monotonicMs
        const { events, frozen_reason } = session
        const next = decideRestart(end, {
          now_ms,
          breaker,
          frozen_reason,
          newer: undefined,
          full: undefined,
          last_rev: events.length,
          proven: true
        })
        token = next.type === "restart" && end.type === "crashed" ? end.token : undefined
        if (next.type === "await message" || next.type === "next session") {
          this.#end(session, "closed")
          session = undefined
          continue
        }
        if (next.type === "restart") breaker = next.breaker
        else {
          this.#end(session, next.status)
          // The operator looks at it and starts it again.
          yield* Effect.sleep(this.#draw.between(200, 3000))
          yield* this.#patiently
          breaker = BREAKER
        }
        this.#resume(session)
      }
    }).pipe(Effect.tapCause((cause) => Effect.sync(() => invariants.broke("choird", cause))))
  }

  /** One epoch, by choird's own code. */
  #epoch(session: SessionTable, token: Redacted.Redacted | undefined) {
    const { invariants, note, setup } = this.#world
    const { epoch, session_id } = session
    const stop = Deferred.makeUnsafe<void>()
    this.#host.stoppable(stop)
    const { crash_detection_threshold_ms } = setup
    const { summary_timeout_ms } = setup.config(this.#world.config_version).memory
    const plan = {
      row: this.#row(session),
      bindings: { workspace: "ws" },
      config: { runtime: {}, workspaces: {} },
      fullAt: () => Effect.undefined,
      summary_ms_max: Effect.succeed(summary_timeout_ms),
      silence_ms_max: Effect.succeed(crash_detection_threshold_ms),
      image: { path: "" },
      programs: {},
      token: token ?? Redacted.make(this.#host.tokens.bootstrap(session_id, epoch)),
      stop,
      onReady: Effect.void,
      onStopping: Effect.void,
      onLingering: () => Effect.void
    } as unknown as EpochPlan
    return Effect.scoped(runEpoch(plan)).pipe(
      Effect.provideContext(this.#services()),
      Effect.orDie,
      Effect.tap((end) =>
        Effect.sync(() => {
          this.#host.stopping(session_id, undefined)
          if (end.type === "crashed" && end.reason.startsWith("it was silent") && this.#excuse === undefined)
            invariants.needless(`epoch ${epoch} of ${session_id} ended since ${end.reason}`)
          note(`epoch ${epoch} of ${session_id} ended: ${end.type} ${"reason" in end ? end.reason : ""}`)
        })
      )
    )
  }

  /** N1: what excuses an agent's silence until now. One lost message does not. */
  #excused(session_id: SessionId): string | undefined {
    const { containers, wire } = this.#host.machine
    const process = containers.findLast((container) => container.session_id === session_id)?.process
    const last_heartbeat_ms = this.#host.livenessBySession.get(session_id)?.last_heartbeat_ms
    if (process?.alive !== true || last_heartbeat_ms === undefined) return "it died"
    if (process.frozen_until > last_heartbeat_ms || this.#host.process.frozen_until > last_heartbeat_ms)
      return "somebody stood still"
    if (wire.cut_until > last_heartbeat_ms) return "the wire was cut"
    const troubles = wire.troubles.filter(
      ({ at_ms, of }) => of === process && at_ms >= last_heartbeat_ms - SILENCE_BEGINS_MS
    )
    return troubles.length > 1 ? "more than one message got lost or came late" : undefined
  }

  #end(session: SessionTable, status: SessionTable["status"]): void {
    session.status = status
    this.#host.tokens.revoke(session.session_id)
  }

  #resume(session: SessionTable): void {
    this.#world.database.resume(session)
    this.#world.invariants.resumed(session)
  }

  /** Waits for a message that starts the next session. */
  #successor(): Effect.Effect<SessionTable> {
    const { database } = this.#world
    return Effect.suspend(() =>
      database.inbox.every(({ acked_rev }) => acked_rev !== undefined)
        ? Effect.andThen(Effect.sleep(SUCCESSOR_LOOK_MS), this.#successor())
        : Effect.andThen(
            this.#patiently,
            Effect.sync(() => database.create())
          )
    )
  }
}
