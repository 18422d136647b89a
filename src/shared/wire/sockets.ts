/** Unix sockets in private folders (D10, D11): the one way that choirctl and the agents reach choird on one host. */
import { chmodSync, lstatSync, mkdirSync, rmSync, type Stats } from "node:fs"
import { connect } from "node:net"
import { dirname } from "node:path"
import { Effect, Schema } from "effect"
import { layerUndiciClient } from "./undiciClient.ts"

/** The path of a Unix socket: 108 bytes of the kernel's address, of which one ends it. */
export const SOCKET_PATH_BYTES_MAX = 107
/** Connections that a client opens to a socket of choird; what one is still closing counts as well, so it is below AGENT_CONNECTIONS_MAX. */
export const CLIENT_CONNECTIONS_MAX = 6

/** A place where no socket may be opened. */
export class SocketRefused extends Schema.TaggedError<SocketRefused>()("SocketRefused", {
  path: Schema.String,
  reason: Schema.Literals(["too_long", "answered", "not_a_socket", "failed"]),
  detail: Schema.String
}) {
  override get message() {
    switch (this.reason) {
      case "too_long":
        return `the socket path ${this.path} is longer than ${SOCKET_PATH_BYTES_MAX} bytes: choose a home with a shorter path`
      case "answered":
        return `another process answers on ${this.path}: stop it first`
      case "not_a_socket":
        return `${this.path} is there and is not a socket: move it away`
      case "failed":
        return `cannot open a socket at ${this.path}: ${this.detail}`
    }
  }
}

const refused = (path: string, reason: SocketRefused["reason"], detail = "") =>
  new SocketRefused({ path, reason, detail })

const attempt = <A>(path: string, run: () => A) =>
  Effect.try({ try: run, catch: (cause) => refused(path, "failed", String(cause)) })

/** Whether somebody accepts connections there. Only a refused connection proves that nobody does. */
const answers = (path: string) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(path)
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", (error: NodeJS.ErrnoException) =>
      resume(Effect.succeed(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"))
    )
    return Effect.sync(() => socket.destroy())
  })

/**
 * Makes the folder of a socket, 0700, and takes away what a dead process left at the path. Refuses a path that is too long for
 * the kernel, one where somebody answers, and one where there is something other than a socket.
 */
export const claimSocketPath = Effect.fn("claimSocketPath")(function* (path: string) {
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) return yield* refused(path, "too_long")
  const folder = dirname(path)
  yield* attempt(path, () => mkdirSync(folder, { recursive: true, mode: 0o700 }))
  const place: Stats = yield* attempt(path, () => lstatSync(folder))
  if (!place.isDirectory()) return yield* refused(path, "failed", `${folder} is not a folder`)
  yield* attempt(path, () => chmodSync(folder, 0o700))
  const found = yield* attempt(path, () => lstatSync(path, { throwIfNoEntry: false }))
  if (found === undefined) return
  if (!found.isSocket()) return yield* refused(path, "not_a_socket")
  if (yield* answers(path)) return yield* refused(path, "answered")
  yield* attempt(path, () => rmSync(path, { force: true }))
})

/**
 * An HTTP client whose every request goes to this socket, whatever host it names. A caller bounds the time until an answer begins.
 * @param idle_ms how long an answer that has begun may bring nothing; 0 means no limit.
 */
export const layerSocketClient = (path: string, idle_ms = 0) =>
  layerUndiciClient({ connect: { socketPath: path }, connections: CLIENT_CONNECTIONS_MAX, idle_ms })
