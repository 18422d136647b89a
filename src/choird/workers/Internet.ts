/** The network as choird's workers reach it: names are asked once, and connections go to addresses alone. */
import { Resolver } from "node:dns/promises"
import { connect, type Socket } from "node:net"
import { Context, Effect, Result, Schema } from "effect"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { isOwnAddress } from "./ownAddress.ts"

/** One question to a name server, and how often it is asked. */
const NAME_MS_MAX = 3000
const NAME_TRIES_MAX = 2

/** No name server said whether a name has addresses. */
export class NoNameServer extends Schema.TaggedError<NoNameServer>()("NoNameServer", { name: Schema.String }) {
  override get message() {
    return `no name server answered for ${this.name}`
  }
}

/** The errors of a resolver by which a name server says that there is no such address. */
const NO_ADDRESS = new Set(["ENODATA", "ENOTFOUND"])

/** The addresses in the answers to both questions about a name, or their error codes; `undefined` where no address came and an answer is missing. */
export const addressesIn = (
  answers: ReadonlyArray<Result.Result<ReadonlyArray<string>, string>>
): ReadonlyArray<string> | undefined => {
  const found = answers.flatMap((answer) => (Result.isSuccess(answer) ? answer.success : []))
  const isKnown = answers.every((answer) => Result.isSuccess(answer) || NO_ADDRESS.has(answer.failure))
  return found.length > 0 || isKnown ? found : undefined
}

/** The network: it resolves names and opens connections. */
export interface InternetService {
  /** The addresses of a name, IPv4 first; none where there are none. */
  resolve(name: string): Effect.Effect<ReadonlyArray<string>, NoNameServer>
  /** Whether an address is this machine's: what listens there may trust who comes from inside. */
  isOwn(address: string): boolean
  /** A connection that is being opened, to an address and nothing else. */
  connect(address: string, port: number): Socket
}

/** @param servers name servers, as `address:port`; without them those of /etc/resolv.conf. */
export const internetOf = (servers?: ReadonlyArray<string>): InternetService => {
  // Not getaddrinfo, which holds one of Node's few threads for as long as a name server pleases, and knows the host's own names.
  const resolver = new Resolver({ timeout: NAME_MS_MAX, tries: NAME_TRIES_MAX })
  if (servers !== undefined) resolver.setServers(servers)
  const asked = (ask: () => Promise<ReadonlyArray<string>>) =>
    Effect.result(Effect.tryPromise({ try: ask, catch: (cause) => codeOf(cause) ?? "" }))
  return {
    resolve: (name) =>
      Effect.flatMap(
        Effect.all([asked(() => resolver.resolve4(name)), asked(() => resolver.resolve6(name))], { concurrency: 2 }),
        (answers) => {
          const found = addressesIn(answers)
          return found === undefined ? new NoNameServer({ name }) : Effect.succeed(found)
        }
      ),
    isOwn: (address) => isOwnAddress(address),
    connect: (address, port) => connect({ host: address, port, autoSelectFamily: false })
  }
}

/** The Internet, unless the program that embeds choird's layers, such as a test, puts another network in its place. */
export const Internet = Context.Reference<InternetService>("choir/choird/Internet", {
  defaultValue: () => internetOf()
})
