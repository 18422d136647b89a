/** A loopback server of this host made reachable for containers, which have a loopback of their own. */
import { type AddressInfo, connect, createServer } from "node:net"
import { networkInterfaces } from "node:os"
import { Effect } from "effect"

/** This host's own address in its network. */
export const lanAddress = (): string =>
  Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === "IPv4" && !address.internal)?.address ?? "127.0.0.1"

/** The url of the same server by an address of this host, for as long as the scope lives. */
export const reachable = Effect.fnUntraced(function* (loopback: string) {
  const { hostname, pathname, port } = new URL(loopback)
  const server = createServer((outer) => {
    const inner = connect(Number(port), hostname)
    outer.on("error", () => inner.destroy()).on("close", () => inner.destroy())
    inner.on("error", () => outer.destroy()).on("close", () => outer.destroy())
    outer.pipe(inner).pipe(outer)
  })
  yield* Effect.callback<void>((resume) => void server.listen(0, "0.0.0.0", () => resume(Effect.void)))
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  return `http://${lanAddress()}:${(server.address() as AddressInfo).port}${pathname}`
})
