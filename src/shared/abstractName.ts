/**
 * A name that one process of the host holds at a time: an abstract Unix socket, which the kernel takes back with the last process that
 * holds it, so that no death leaves a lock behind.
 */
import { createServer } from "node:net"
import { Effect } from "effect"

const bind = (name: string) =>
  Effect.callback<() => void, NodeJS.ErrnoException>((resume) => {
    const server = createServer((socket) => socket.on("error", () => undefined).end(String(process.pid)))
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen({ path: name }, () => resume(Effect.succeed(() => void server.close())))
  })

/** Holds a name until the scope closes, and tells its pid to whoever connects. Fails with EADDRINUSE while somebody holds it. */
export const holdName = (name: string) => Effect.acquireRelease(bind(name), (close) => Effect.sync(close))
