/**
 * Connections to the public network for agents (docs/web.md, Where requests may go): a name is resolved once, every address that is not public is
 * refused, and the connection goes to the very address that was looked at, so that no second answer of a name server counts.
 */
import { isIP, type Socket } from "node:net"
import { Context, Effect, Layer, Result, Schema } from "effect"
import { allowedPlace } from "#schema/AllowedHost.ts"
import type { Config } from "#schema/Config.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Internet, type InternetService } from "./Internet.ts"
import { IpNetwork, NetAddress } from "effect/net"
import { isPublic } from "#src/shared/wire/egress.ts"
import { hostOf } from "#src/shared/wire/hostPort.ts"

/** Beside the private ranges: the relays of 6to4, and the address at which Azure's hosts answer their machines. */
const V4_REFUSED = ["192.88.99.0/24", "168.63.129.16/32"].map(IpNetwork.fromStringUnsafe)

/** All that is assigned for the public network; mapped, translated (NAT64), local and multicast addresses are outside. */
const V6_GLOBAL = IpNetwork.fromStringUnsafe("2000::/3")
/** Within it: protocols with Teredo, examples, and 6to4, which holds an IPv4 address. */
const V6_REFUSED = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"].map(IpNetwork.fromStringUnsafe)

/**
 * Whether an address, as text, is one of the public network, to which alone choird connects for an agent (D21). A text that is not an address
 * is not public.
 */
export const isGlobalAddress = (text: string): boolean =>
  Result.match(NetAddress.ipFromString(text), {
    onFailure: () => false,
    onSuccess: (ip) =>
      NetAddress.isIpv4Address(ip)
        ? isPublic(text) && !V4_REFUSED.some(IpNetwork.contains(ip))
        : IpNetwork.contains(V6_GLOBAL, ip) && !V6_REFUSED.some(IpNetwork.contains(ip))
  })

/** From the first packet to a connection. */
const CONNECT_MS_MAX = 10_000
/** Addresses of one name that are tried. */
const ADDRESSES_TRIED_MAX = 3
const HTTP_PORTS = new Set([80, 443])
/** Below it lie the ports of the system's services; of those only the web's may be reached. */
const USER_PORT_FIRST = 1024

/**
 * The addresses of a name that are tried, the families by turns: a host may lack either of them, and a name may have more addresses of one than
 * are tried at all.
 */
export const triedAddresses = (addresses: ReadonlyArray<string>): ReadonlyArray<string> => {
  const v4 = addresses.filter((address) => isIP(address) === 4)
  const v6 = addresses.filter((address) => isIP(address) === 6)
  return Array.from({ length: Math.max(v4.length, v6.length) }, (_, at) => [v4[at], v6[at]])
    .flat()
    .filter((address) => address !== undefined)
    .slice(0, ADDRESSES_TRIED_MAX)
}

/** Refusals that look at the text of an address alone. */
const UNASKED = new Set(["bad_host", "bad_port", "not_listed"])

/** A place that is not connected to. The words are for a model. */
export class DialRefused extends Schema.TaggedError<DialRefused>()("DialRefused", {
  reason: Schema.Literals([
    "bad_host",
    "bad_port",
    "not_listed",
    "no_address",
    "no_name_server",
    "not_public",
    "unreachable"
  ]),
  host: Schema.String
}) {
  /** Whether it was refused before anything left this machine, a question to a name server included. */
  get isUnasked(): boolean {
    return UNASKED.has(this.reason) || (this.reason === "not_public" && isIP(this.host) !== 0)
  }

  override get message() {
    switch (this.reason) {
      case "bad_host":
        return "the address has no host that can be asked for"
      case "bad_port":
        return `this port is not allowed: use 80, 443 or ${USER_PORT_FIRST} and above`
      case "not_listed":
        return `${this.host} is not in runtime.allow of config.json, and runtime.network is allowlist`
      case "no_address":
        return `${this.host} has no address: check its spelling, and that this host is online`
      case "no_name_server":
        return `no name server answered for ${this.host}: this host may be offline, or its DNS may be down`
      case "not_public":
        return `${this.host} is not on the public network; other networks cannot be reached from here`
      case "unreachable":
        return `${this.host} does not answer`
    }
  }
}

/** Opens connections to hosts on the public network, and refuses all others. */
export class WebDialer extends Context.Service<
  WebDialer,
  {
    /** An open connection, which belongs to the caller. An interruption leaves none. */
    dial(host: string, port: number): Effect.Effect<Socket, DialRefused>
  }
>()("choir/choird/WebDialer") {
  static readonly layer = Layer.effect(
    WebDialer,
    Effect.gen(function* () {
      const { current } = yield* ConfigStore
      const internet = yield* Internet
      return WebDialer.of({
        dial: Effect.fn("WebDialer.dial")(function* (host, port) {
          const { config } = yield* current
          return yield* dial(internet, config.runtime, host, port)
        })
      })
    })
  )
}

/** A host as a browser understands it, in whatever form it is written: `0x7f.1` is 127.0.0.1. IPv6 without its brackets. */
const plainHost = (host: string): string | undefined => {
  const written = isIP(host) === 6 ? `[${host}]` : host
  if (written === "" || /[\s/?#@\\]/u.test(written)) return undefined
  const url = URL.parse(`http://${written}/`)
  const name = url === null ? "" : hostOf(url).replace(/\.$/u, "")
  return name === "" ? undefined : name
}

const isListed = ({ allow }: Config["runtime"], host: string, port: number): boolean =>
  allow.some((entry) => {
    const place = allowedPlace(entry)
    return typeof place !== "string" && place.host === host && place.port === port
  })

const dial = Effect.fnUntraced(function* (
  { connect, isOwn, resolve }: InternetService,
  runtime: Config["runtime"],
  written: string,
  port: number
) {
  const refused = (reason: DialRefused["reason"], host = written.slice(0, 253)) => new DialRefused({ reason, host })
  const host = plainHost(written)
  if (host === undefined) return yield* refused("bad_host")
  if (!(HTTP_PORTS.has(port) || (port >= USER_PORT_FIRST && port <= 65_535))) return yield* refused("bad_port")
  if (runtime.network === "allowlist" && !isListed(runtime, host, port)) return yield* refused("not_listed", host)
  const found = isIP(host) === 0 ? yield* Effect.mapError(resolve(host), () => refused("no_name_server", host)) : [host]
  if (found.length === 0) return yield* refused("no_address", host)
  const global = triedAddresses(found.filter((address) => isGlobalAddress(address) && !isOwn(address)))
  if (global.length === 0) return yield* refused("not_public", host)
  for (const address of global) {
    const socket = yield* opened(connect(address, port))
    if (socket !== undefined) return socket
  }
  return yield* refused("unreachable", host)
})

/** The connection once it is open, or `undefined` when it does not open. */
const opened = (socket: Socket): Effect.Effect<Socket | undefined> =>
  Effect.callback<Socket | undefined>((resume) => {
    const failed = () => {
      socket.destroy()
      resume(Effect.undefined)
    }
    socket.once("error", failed)
    socket.once("connect", () => {
      socket.off("error", failed)
      // Until the caller listens, an error is nobody's.
      socket.on("error", () => undefined)
      resume(Effect.succeed(socket))
    })
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: CONNECT_MS_MAX, orElse: () => Effect.undefined }))
