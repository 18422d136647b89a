/**
 * choird as its agent sees it: verbs and push stream over the simulated network. It dies with all that it had in memory, and comes
 * back with what the database has.
 */
import { Deferred, Effect, Exit, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { Signal } from "#schema/Signal.ts"
import type { Liveness } from "#src/choird/agents/LiveEpochs.ts"
import { fenced, makeDatabaseFence } from "#src/choird/database/DatabaseFence.ts"
import { holdDatabase } from "#src/choird/database/DatabaseLock.ts"
import type { SessionTable } from "./Database.ts"
import { Delivery } from "./Delivery.ts"
import { Executor } from "./Executor.ts"
import { Epochs } from "./Epochs.ts"
import type { Process } from "./Kernel.ts"
import type { Machine } from "./Machine.ts"
import type { Exchange, Pieces } from "./Network.ts"
import type { Seed } from "./Seed.ts"
import { ADDRESS } from "./Rival.ts"
import { runtimeOf } from "./SimRuntime.ts"
import { Tokens } from "./Tokens.ts"
import { Verbs } from "./Verbs.ts"
import type { World } from "./World.ts"

const isSignal = Schema.encodeUnknownSync(Signal)

/** What one life of choird has in memory. */
interface Life {
  readonly process: Process
  readonly livenessBySession: Map<SessionId, Liveness>
  readonly streams: Map<SessionId, { readonly pieces: Pieces; cursor: number; told: number | undefined }>
  readonly stops: Map<SessionId, number>
  readonly verbs: Verbs
  /** Done once the operator wants the agent to stop. */
  stop: Deferred.Deferred<void>
}

export class Choird {
  readonly #world: World
  readonly #machine: Machine
  readonly #draw: Seed
  readonly #tokens = new Tokens()
  readonly #delivery: Delivery
  readonly #executor: Executor
  #life: Life | undefined
  #lives = 0

  constructor(world: World, machine: Machine) {
    this.#world = world
    this.#machine = machine
    this.#draw = world.draw("choird")
    this.#delivery = new Delivery(world)
    this.#executor = new Executor(world, () => this.wake())
  }

  get process(): Process | undefined {
    return this.#life?.process
  }

  /** Starts it, and with it what was active. Where another choird wants the database it first takes it, and ends when it has lost it. */
  start(): void {
    const { kernel, locks, note, setup } = this.#world
    const process = kernel.process("choird")
    const runtime = runtimeOf(kernel, process, this.#world.draw(`scheduler choird ${this.#lives++}`), note)
    if (!setup.rivalled) return this.#serve(process, runtime, () => true)
    const fence = makeDatabaseFence(ADDRESS)
    const sql = fenced(locks.client(process), fence)
    const life = Effect.gen({ self: this }, function* () {
      const taken = yield* holdDatabase(ADDRESS, fence)
      this.#serve(process, runtime, () =>
        Exit.isSuccess(Effect.runSyncExit(Effect.provideService(fence.prove, SqlClient.SqlClient, sql)))
      )
      return yield* taken
    })
    const held = Effect.scoped(Effect.provideService(life, SqlClient.SqlClient, sql))
    runtime.start(
      Effect.andThen(
        Effect.ignore(held),
        Effect.sync(() => this.#ends(process))
      )
    )
  }

  /** It ends by itself, and is started again like one that died. */
  #ends(process: Process): void {
    const { kernel } = this.#world
    if (this.#life?.process === process) return this.crash()
    kernel.kill(process)
    kernel.after(kernel.world, this.#draw.between(200, 4000), () => this.start())
  }

  #serve(process: Process, runtime: ReturnType<typeof runtimeOf>, mayWrite: () => boolean): void {
    const { note } = this.#world
    const livenessBySession = new Map<SessionId, Liveness>()
    const life: Life = {
      process,
      livenessBySession,
      streams: new Map(),
      stops: new Map(),
      verbs: new Verbs(this.#world, {
        process,
        tokens: this.#tokens,
        livenessBySession,
        mayWrite,
        asked: () => this.#expire(life),
        stream: (session, after, exchange) => this.#stream(session, after, exchange)
      }),
      stop: Deferred.makeUnsafe()
    }
    this.#life = life
    note(`${process.name} starts`)
    this.#tokens.restart()
    runtime.start(this.#epochs(life, mayWrite).run())
    this.#delivery.start(process)
    this.#executor.start(process)
    this.#expire(life)
  }

  #epochs(life: Life, mayWrite: () => boolean): Epochs {
    return new Epochs(this.#world, {
      process: life.process,
      mayWrite,
      machine: this.#machine,
      tokens: this.#tokens,
      livenessBySession: life.livenessBySession,
      server: (session_id) => ({
        listener: () => this.#life?.process,
        handle: (request, exchange) => this.#life?.verbs.handle(session_id, request, exchange)
      }),
      stopping: (session_id, until) => {
        if (until === undefined) life.stops.delete(session_id)
        else life.stops.set(session_id, until)
        this.#push(life)
      },
      stoppable: (stop) => {
        life.stop = stop
      }
    })
  }

  /** Dies with all that it had in memory. Its agents die with it, though not at the same moment; then it is started again. */
  crash(): void {
    const life = this.#life
    if (life === undefined) return
    const { invariants, kernel, network, note } = this.#world
    note(`${life.process.name} dies`)
    kernel.kill(life.process)
    this.#life = undefined
    invariants.choirdDied()
    network.reset(life.process)
    for (const container of this.#machine.living)
      kernel.after(kernel.world, this.#draw.wait(500), () => this.#machine.crash(container))
    kernel.after(kernel.world, this.#draw.between(200, 4000), () => this.start())
  }

  /** The operator stops the agent; the run starts it again after a while. */
  stopAgent(): void {
    const life = this.#life
    if (life !== undefined) this.#world.kernel.post(life.process, () => Deferred.doneUnsafe(life.stop, Effect.void))
  }

  /** Something was added for a running agent. */
  wake(): void {
    const life = this.#life
    if (life !== undefined) this.#world.kernel.post(life.process, () => this.#push(life))
  }

  /** Ends the approvals whose time is up, and comes back when the next one's is. */
  #expire(life: Life): void {
    const { database, kernel } = this.#world
    const again = (ms: number) => void kernel.after(life.process, ms, () => this.#expire(life))
    if (database.isAway(kernel.now)) return again(1000)
    const next_ms = database.approvals.expire(kernel.now)
    this.#push(life)
    if (next_ms !== undefined) again(Math.max(1, next_ms - kernel.now))
  }

  #stream(session: SessionTable, after: number, exchange: Exchange): void {
    const life = this.#life
    if (life === undefined) return exchange.reset()
    // A session has one stream: whoever connects anew takes the place of the old one.
    life.streams.get(session.session_id)?.pieces.end()
    const pieces = exchange.stream()
    pieces.write(": choir\n\n")
    life.streams.set(session.session_id, { pieces, cursor: after, told: undefined })
    this.#push(life)
  }

  #push(life: Life): void {
    const { database, io, kernel } = this.#world
    for (const [session_id, stream] of life.streams) {
      const stop = life.stops.get(session_id)
      if (stop !== undefined && stop !== stream.told) {
        stream.told = stop
        this.#write(stream.pieces, undefined, { type: "Stop", deadline_ms: Math.max(0, stop - kernel.now) })
      }
      if (database.isAway(kernel.now) || io.meets("query") === "query-refused") {
        // What cannot be read breaks the stream, and the agent asks again.
        life.streams.delete(session_id)
        stream.pieces.end()
        continue
      }
      for (const { id, signal } of database.pushes(session_id, stream.cursor)) {
        stream.cursor = id
        this.#write(stream.pieces, id, signal)
      }
    }
  }

  #write(pieces: Pieces, id: number | undefined, signal: unknown): void {
    const data = JSON.stringify(isSignal(signal))
    pieces.write(`${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`)
  }
}
