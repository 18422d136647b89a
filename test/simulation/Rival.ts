/** A choird of another home on the same database: it takes the database whenever it can, does nothing with it, and gives it back after a while. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { makeDatabaseFence } from "#src/choird/database/DatabaseFence.ts"
import { holdDatabase } from "#src/choird/database/DatabaseLock.ts"
import { PostgresAddress } from "#src/choird/database/PostgresServer.ts"
import type { Seed } from "./Seed.ts"
import { runtimeOf } from "./SimRuntime.ts"
import type { World } from "./World.ts"

export const ADDRESS = new PostgresAddress({ host: "sim", port: 5432, database: "choir", user: "choir" })

/** Between two restarts of the server, and how long it is away, in ms. */
const RESTARTS_MS = 40_000
const AWAY_MS = 6000
/** How long the other choird keeps the database, and how long its supervisor waits, in ms. */
const KEPT_MS = 30_000
const PAUSE_MS = 1000

export class Rival {
  readonly #world: World
  readonly #draw: Seed

  constructor(world: World) {
    this.#world = world
    this.#draw = world.draw("rival")
  }

  start(): void {
    const { faults, kernel, note } = this.#world
    const process = kernel.process("rival")
    const runtime = runtimeOf(kernel, process, this.#world.draw("scheduler rival"), note)
    const sql = this.#world.locks.client(process)
    const life = Effect.gen({ self: this }, function* () {
      const taken = yield* holdDatabase(ADDRESS, makeDatabaseFence(ADDRESS))
      note("another choird takes the database")
      yield* Effect.raceFirst(taken, Effect.sleep(this.#draw.between(2000, KEPT_MS)))
    })
    const lives = Effect.ignore(Effect.scoped(Effect.provideService(life, SqlClient.SqlClient, sql))).pipe(
      Effect.andThen(Effect.suspend(() => Effect.sleep(this.#draw.wait(PAUSE_MS)))),
      Effect.forever
    )
    runtime.start(lives)
    faults.onCalm(() => kernel.kill(process))
    this.#restarts()
  }

  #restarts(): void {
    const { database, faults, kernel, locks, note } = this.#world
    kernel.after(kernel.world, this.#draw.wait(RESTARTS_MS), () => {
      if (faults.calm) return
      note("the database's server restarts")
      database.leave(kernel.now + this.#draw.between(300, AWAY_MS))
      locks.restart()
      this.#restarts()
    })
  }
}
