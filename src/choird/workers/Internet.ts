/** The network as choird's workers reach it: names are asked once, and connections go to addresses alone. */
import { Resolver } from "node:dns/promises"
import { connect, type Socket } from "node:net"
import { Context, Effect, Layer } from "effect"

/** One question to a name server, and how often it is asked. */
const NAME_MS_MAX = 3000
const NAME_TRIES_MAX = 2

/** Resolves names and opens connections. A test puts another one in its place. */
export class Internet extends Context.Service<
  Internet,
  {
    /** The addresses of a name, IPv4 first; none where there are none. */
    resolve(name: string): Effect.Effect<ReadonlyArray<string>>
    /** A connection that is being opened, to an address and nothing else. */
    connect(address: string, port: number): Socket
  }
>()("choir/choird/Internet") {
  static readonly layer = Layer.sync(Internet, () => {
    // Not getaddrinfo, which holds one of Node's few threads for as long as a name server pleases, and knows the host's own names.
    const resolver = new Resolver({ timeout: NAME_MS_MAX, tries: NAME_TRIES_MAX })
    const none: ReadonlyArray<string> = []
    const asked = (ask: () => Promise<ReadonlyArray<string>>) =>
      Effect.orElseSucceed(Effect.tryPromise({ try: ask, catch: () => undefined }), () => none)
    return Internet.of({
      resolve: (name) =>
        Effect.map(
          Effect.all([asked(() => resolver.resolve4(name)), asked(() => resolver.resolve6(name))], { concurrency: 2 }),
          (found) => found.flat()
        ),
      connect: (address, port) => connect({ host: address, port, autoSelectFamily: false })
    })
  })
}
