/**
 * The part of a database server that keeps two choirds apart: advisory locks, which die with their connection, and the token beside the
 * data. choird's own code asks for them (`DatabaseLock.ts`, `DatabaseFence.ts`); this is what its statements find.
 */
import { Context, Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import type { Process } from "./Kernel.ts"

/** How a transaction is refused whose choird does not have the database any more. */
const DISPLACED = "CH001"

const failed = (code: string | undefined, message: string) =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({ cause: Object.assign(new Error(message), { code }), message })
  })

/** The transaction that runs; none of the statements here has one within another. */
const transactionService = Context.Service<never>("choir/simulation/Transaction")

interface Connection {
  readonly number: number
  readonly process: Process
  open: boolean
}

export class Locks {
  readonly #isAway: () => boolean
  #connections = 0
  #holder: Connection | undefined
  #token: unknown
  /** Whose choird may commit. */
  owner: Process | undefined

  constructor(isAway: () => boolean) {
    this.#isAway = isAway
  }

  /** The server ends every connection, and forgets their locks. */
  restart(): void {
    if (this.#holder !== undefined) this.#holder.open = false
  }

  #current(): Connection | undefined {
    return this.#holder?.open === true && this.#holder.process.alive ? this.#holder : undefined
  }

  #take(connection: Connection): boolean {
    if (this.#current() === undefined) this.#holder = connection
    return this.#holder === connection
  }

  /** What a program asks of the server. */
  client(process: Process): SqlClient.SqlClient {
    const answer = (text: string, values: ReadonlyArray<unknown>) =>
      Effect.suspend(() =>
        this.#isAway() ? Effect.fail(failed(undefined, "the server is away")) : this.#answer(process, text, values)
      )
    const sql = (texts: TemplateStringsArray, ...values: ReadonlyArray<unknown>) => answer(texts.join("?"), values)
    const reserve = Effect.acquireRelease(
      Effect.sync((): Connection => ({ number: ++this.#connections, process, open: true })),
      (connection) =>
        Effect.sync(() => {
          connection.open = false
        })
    ).pipe(
      Effect.map((connection) => ({
        execute: (text: string) =>
          Effect.suspend(() => {
            if (this.#isAway() || !connection.open) return Effect.fail(failed(undefined, "the connection ended"))
            return Effect.succeed(text.includes("pg_try_advisory_lock") ? [{ taken: this.#take(connection) }] : [])
          })
      }))
    )
    const withTransaction = (work: Effect.Effect<unknown>) => Effect.andThen(answer("BEGIN", []), work)
    const unsafe = (text: string) => answer(text, [])
    return Object.assign(sql, {
      reserve,
      transactionService,
      unsafe,
      withTransaction
    }) as unknown as SqlClient.SqlClient
  }

  #answer(process: Process, text: string, [value]: ReadonlyArray<unknown>) {
    if (text.includes("pg_locks")) return Effect.succeed([{ pid: this.#current()?.number ?? null }])
    if (text.startsWith("INSERT INTO choird.holder")) {
      this.#token = value
      this.owner = process
    }
    if (text.startsWith("SELECT choird.require_holder") && value !== this.#token)
      return Effect.fail(failed(DISPLACED, "another choird has taken this database"))
    return Effect.succeed([])
  }
}
