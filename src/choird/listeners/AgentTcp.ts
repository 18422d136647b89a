/**
 * The agents' API on TCP, where the configuration asks for it. The token identifies the session; its rate, connections and request ids
 * are shared with its Unix socket.
 */
import type { Socket } from "node:net"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Context, Effect, FileSystem, Layer, Option, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Caller } from "#schema/AgentApi.ts"
import { CommandLine, type TcpPlan, transportPlan, TransportRefused } from "#src/choird/config/AgentTransport.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit, markRecorded } from "#src/choird/logs/Audit.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { type HttpApp, refusalResponse } from "#src/shared/wire/http.ts"
import { formatPlace } from "#src/shared/wire/hostPort.ts"
import { type ListenRefused, listenTcp } from "./tcp.ts"
import { AgentApp, rateLimited } from "./AgentApp.ts"
import { askedByAgent, auditedRequests } from "./auditedRequests.ts"
import { CurrentOpenSession } from "./OpenSession.ts"
import { makeUnauthenticatedConnections } from "./UnauthenticatedConnections.ts"
import { readTlsIdentity } from "./TlsIdentity.ts"
import { isLoopback } from "#schema/Transport.ts"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { systemWords, writeWhole } from "#src/shared/files/writeWhole.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** Open connections to the agents' TCP listener, of all sessions and unauthenticated clients together. */
const AGENT_TCP_CONNECTIONS_MAX = 512

/** The endpoint of choird's own agents, and the one certificate that they may trust. */
interface ForAgents {
  readonly url: string
  readonly certificate: string | undefined
}

/** The TCP listener, if the configuration asks for one. */
export class AgentTcp extends Context.Service<
  AgentTcp,
  {
    /** The port it listens on. */
    readonly port: number | undefined
    /** The endpoint that choird's own agents use instead of their sockets; `undefined` when they use these. */
    readonly agents: ForAgents | undefined
  }
>()("choir/choird/AgentTcp") {
  /** Listens until the scope closes. Fails when the configuration, the certificate or the address cannot be used. */
  static readonly layer = Layer.effect(
    AgentTcp,
    Effect.gen(function* () {
      const { current, home } = yield* ConfigStore
      const { config } = yield* current
      const plan = yield* Effect.fromResult(transportPlan(config.transport.http, yield* CommandLine))
      return plan === undefined ? { port: undefined, agents: undefined } : yield* open(plan, home)
    })
  )
}

/** The address by which choird's own agents, on the same host, reach a listener. */
const reachedBy = (host: string) => (host === "" || host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host)

const open = Effect.fnUntraced(function* (plan: TcpPlan, home: string) {
  const identity = plan.files === undefined ? undefined : yield* readTlsIdentity(plan.files)
  const host = reachedBy(plan.host)
  const problem = identity?.problemFor(host)
  if (problem !== undefined) {
    if (plan.forAgents) return yield* new TransportRefused({ problem })
    yield* Effect.logWarning(`clients on this host would refuse choird's certificate: ${problem}`)
  }
  const unauthenticated = makeUnauthenticatedConnections(yield* monotonicMs)
  const names = hostNames(plan.host, identity?.names ?? [])
  const { answer } = yield* makeAnswer(names, unauthenticated)
  const listen = (port: number) =>
    listenTcp(answer, {
      host: plan.host,
      port,
      ...(identity === undefined ? {} : { tls: identity }),
      connectionsMax: AGENT_TCP_CONNECTIONS_MAX,
      accept: (connection) => {
        unauthenticated.connected(connection)
        return true
      }
    })
  const port = yield* plan.port === 0 ? listenOnChosen(home, listen) : listen(plan.port)
  const scheme = identity === undefined ? "http" : "https"
  const url = `${scheme}://${formatPlace(host, port)}`
  yield* Effect.logInfo(`the agents' API listens on ${url}${plan.host === host ? "" : " and every other address"}`)
  return { port, agents: plan.forAgents ? { url, certificate: identity?.certificate } : undefined }
})

type UnauthenticatedConnections = ReturnType<typeof makeUnauthenticatedConnections>

const NOT_OPEN_WAIT_MS = 500
const NOT_OPEN = "choird has not taken this session over yet: try again"

/** The token of a request as LeaseAuth will read it. */
const bearer = (authorization: string | undefined) =>
  /^bearer +(?<token>.*)$/iu.exec(authorization ?? "")?.groups?.["token"]

const socketOf = (request: HttpServerRequest.HttpServerRequest): Socket =>
  NodeHttpServerRequest.toIncomingMessage(request).socket

/** Counts a request by its session or its address before it is read, and answers those that nobody may send. */
const makeAnswer = Effect.fnUntraced(function* (
  names: ReadonlySet<string>,
  unauthenticated: UnauthenticatedConnections
) {
  const { app, find, of } = yield* AgentApp
  const audit = yield* Audit
  const tokens = yield* Tokens

  /** The caller with a valid token, and its session if that is open. */
  const callerOf = Effect.fnUntraced(function* ({ headers }: HttpServerRequest.HttpServerRequest) {
    const token = bearer(headers["authorization"])
    if (token === undefined) return undefined
    const caller = Option.getOrUndefined(yield* tokens.identify(Redacted.make(token)))
    return caller === undefined ? undefined : { caller, session: find(caller.session_id) }
  })

  const refused = Effect.fnUntraced(function* (
    address: string,
    type: string,
    detail: Readonly<Record<string, number>>
  ) {
    yield* audit.record({ who: `address:${address}`, action: "rpc", detail: { refused: type, ...detail } })
  })

  /** A request that the session's own rate does not bound. */
  const asUnauthenticated = Effect.fnUntraced(function* (address: string, answer: HttpApp) {
    const { turnedAway, wait_ms } = unauthenticated.admit(address, yield* monotonicMs)
    // One audit row counts all rejected requests, with the next accepted one.
    if (wait_ms > 0) return yield* Effect.as(markRecorded, rateLimited(wait_ms))
    if (turnedAway > 0) yield* refused(address, "RATE_LIMITED", { requests: turnedAway })
    return yield* answer
  })

  const isCurrent = ({ standing }: Caller) => standing !== "superseded"

  const answer: HttpApp = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const connection = socketOf(request)
    const address = connection.remoteAddress ?? "gone"
    const head = headRefusal(names, request.headers)
    if (head !== undefined) {
      const type = head.status === 403 ? "ORIGIN" : "HOST"
      return yield* asUnauthenticated(
        address,
        Effect.as(refused(address, type, {}), refusalResponse({ ...head, type }))
      )
    }
    const found = yield* callerOf(request)
    if (found === undefined) return yield* asUnauthenticated(address, app)
    const { caller, session } = found
    // An agent of an older epoch may learn that it is fenced, and must not use up the rate of its successor.
    if (!isCurrent(caller))
      return yield* asUnauthenticated(address, Effect.provideService(app, CurrentOpenSession, session))
    // The agent of an earlier choird comes before this one has taken its session over. A refusal would end it, and its work with it.
    if (session === undefined)
      return yield* asUnauthenticated(address, Effect.succeed(rateLimited(NOT_OPEN_WAIT_MS, NOT_OPEN)))
    if (!session.claim(connection, yield* monotonicMs)) {
      const tooMany = rateLimited(1000, "too many connections of this session: close one first")
      return HttpServerResponse.setHeader(tooMany, "connection", "close")
    }
    unauthenticated.proved(connection)
    return yield* of(session)
  })
  const audited = yield* auditedRequests
  return { answer: audited(answer, askedByAgent(undefined)) }
})

const LOOPBACK = ["localhost", "127.0.0.1", "::1"]

/**
 * The names by which a listener may be called: its own, those of its certificate, and this host's loopback names when it can be
 * reached by them. @param host as it is listened on, empty for every address.
 */
export const hostNames = (host: string, certified: ReadonlyArray<string>): ReadonlySet<string> => {
  const everywhere = host === "" || host === "0.0.0.0" || host === "::"
  const own = everywhere ? [] : [host]
  return new Set([...own, ...certified, ...(everywhere || isLoopback(host) ? LOOPBACK : [])])
}

const HOST = /^(?:\[(?<address>[0-9a-f:.]+)\]|(?<name>[^:[\]]+))(?::\d{1,5})?$/iu

/** Whether a Host header names the listener. The port may be another, as behind a forwarded one. */
const isNamed = (names: ReadonlySet<string>, header: string | undefined) => {
  const { address, name } = HOST.exec(header ?? "")?.groups ?? {}
  return names.has((address ?? name ?? "").toLowerCase())
}

/** The refusal of a request by its head alone. No agent sends Origin, and every page's cross-origin request does. */
const headRefusal = (
  names: ReadonlySet<string>,
  headers: Readonly<Record<string, string | undefined>>
): { readonly status: 403 | 421; readonly message: string } | undefined => {
  const { host, origin } = headers
  if (origin !== undefined) return { status: 403, message: "requests of web pages are refused" }
  if (isNamed(names, host)) return undefined
  return { status: 421, message: "the Host header does not name this server" }
}

const placeOf = (home: string) => join(home, "socks", "agents.port")

const isPort = (port: number) => port > 0 && port < 65_536

/** The kept port; `undefined` without a file or with anything else in it. */
const kept = (home: string) =>
  Effect.try(() => readFileSync(placeOf(home), "utf8")).pipe(
    Effect.map((text) => (/^\d{1,5}\n$/u.test(text) && isPort(Number(text)) ? Number(text) : undefined)),
    Effect.orElseSucceed(() => undefined)
  )

/** Writes the port, for its owner alone, and whole or not at all. A full disk stops nobody. */
const keep = Effect.fnUntraced(
  function* (home: string, port: number) {
    const fs = yield* FileSystem.FileSystem
    const place = placeOf(home)
    yield* fs.makeDirectory(dirname(place), { recursive: true, mode: 0o700 })
    yield* writeWhole(place, `${port}\n`)
  },
  Effect.catch((error) => Effect.logWarning("the port of the agents' API could not be kept", systemWords(error)))
)

/**
 * Listens on the previous port, or on one that the kernel chooses when there was none or it is taken.
 *
 * @param listen binds a port, 0 for any, and answers which it is.
 */
export const listenOnChosen = Effect.fn("chosenPort.listen")(function* <R>(
  home: string,
  listen: (port: number) => Effect.Effect<number, ListenRefused, R>
) {
  const before = yield* kept(home)
  const port = yield* before === undefined
    ? listen(0)
    : Effect.catch(listen(before), ({ code }) =>
        Effect.andThen(
          Effect.logWarning(
            `port ${before} is not available again (${code}): an agent that outlived an earlier choird cannot send its events`
          ),
          listen(0)
        )
      )
  if (port !== before) yield* keep(home, port)
  return port
})
