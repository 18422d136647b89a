/**
 * One choird per home (wire.md, Host): an abstract Unix socket named by the hash of the home's real path. The kernel takes it back
 * with the last process that holds it, so that no death leaves a lock behind.
 */
import { connect, createServer } from "node:net"
import { Effect, Runtime, Schema } from "effect"
import { sha256 } from "#src/shared/hashChain.ts"
import { HOME_LOCK_ANSWER_MS_MAX } from "#src/shared/limits.ts"

/** Another choird uses this home. */
export class HomeTaken extends Schema.TaggedError<HomeTaken>()("HomeTaken", {
  home: Schema.String,
  pid: Schema.NullOr(Schema.String)
}) {
  override readonly [Runtime.errorExitCode] = 75
  override get message() {
    const who = this.pid === null ? "" : ` (pid ${this.pid})`
    return `another choird runs in ${this.home}${who}: end it first (SIGTERM), or choose another home with --home`
  }
}

export class HomeLockFailed extends Schema.TaggedError<HomeLockFailed>()("HomeLockFailed", {
  home: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `${this.home} cannot be locked: ${this.problem}. choird needs Linux, for its abstract Unix sockets`
  }
}

/** What the holder says of itself. Any user of the host can take a name, so that only digits are believed. */
const holderOf = (path: string) =>
  Effect.callback<string | null>((resume) => {
    const socket = connect(path)
    const told = (text: string | null) => {
      socket.destroy()
      resume(Effect.succeed(text))
    }
    socket.once("error", () => told(null)).once("end", () => told(null))
    socket.once("data", (bytes) => told(/^\d{1,10}$/u.exec(bytes.toString("latin1"))?.[0] ?? null))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: HOME_LOCK_ANSWER_MS_MAX, orElse: () => Effect.succeed(null) }))

const bind = (path: string) =>
  Effect.callback<() => void, NodeJS.ErrnoException>((resume) => {
    const server = createServer((socket) => socket.on("error", () => undefined).end(String(process.pid)))
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen({ path }, () => resume(Effect.succeed(() => void server.close())))
  })

/** Holds the home until the scope closes. @param home its real path. */
export const lockHome = Effect.fn("HomeLock.lock")(function* (home: string) {
  const path = `\0choird/${sha256(home)}`
  yield* Effect.acquireRelease(bind(path), (close) => Effect.sync(close)).pipe(
    Effect.catch(
      Effect.fnUntraced(function* ({ code, message }) {
        if (code === "EADDRINUSE") return yield* new HomeTaken({ home, pid: yield* holderOf(path) })
        return yield* new HomeLockFailed({ home, problem: message })
      })
    )
  )
})
