/** The agent API as choird serves it: who may call, strict bodies, and the same answers, over texts. */
import { Deferred, Effect, Result, Schema } from "effect"
import {
  type Caller,
  Heartbeat,
  HeartbeatReply,
  InitHello,
  InitHelloReply,
  ReportStatus,
  RequestApproval,
  TerminateSelf
} from "#schema/AgentApi.ts"
import type { SessionId } from "#schema/Ids.ts"
import type { Liveness } from "#src/choird/agents/LiveEpochs.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import { jobOfToken } from "#src/shared/wire/jobToken.ts"
import { Database, type SessionTable } from "./Database.ts"
import type { Process } from "./Kernel.ts"
import type { Exchange, Request } from "./Network.ts"
import { BINDINGS, CANARY } from "./Setup.ts"
import type { Tokens } from "./Tokens.ts"
import type { World } from "./World.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

/** Events of one page of the tail; few, so that agents ask for several. */
const TAIL_EVENTS = 60

const strict = <S extends Schema.Codec<unknown, unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownResult(Schema.fromJsonString(schema), { errors: "all", onExcessProperty: "error" })
  return (text: string): Result.Result<S["Type"], string> => Result.mapError(decode(text), (error) => error.message)
}
const readHeartbeat = strict(Heartbeat)
const readHello = strict(InitHello)
const readTerminate = strict(TerminateSelf)
const readApproval = strict(RequestApproval)
const readReport = strict(ReportStatus)
const writeHeartbeat = Schema.encodeSync(Schema.fromJsonString(HeartbeatReply))
const writeHello = Schema.encodeSync(Schema.fromJsonString(InitHelloReply))

const refusal = (type: string, message: string) => JSON.stringify({ error: { type, message } })

/** One life of choird, as its verbs see it. */
export interface Serving {
  readonly process: Process
  readonly tokens: Tokens
  /** Whether a transaction of this choird is committed. */
  readonly mayWrite: () => boolean
  readonly livenessBySession: ReadonlyMap<SessionId, Liveness>
  /** An approval waits for a person, until its time is up. */
  readonly asked: () => void
  readonly stream: (session: SessionTable, after: number, exchange: Exchange) => void
}

export class Verbs {
  readonly #world: World
  readonly #serving: Serving

  constructor(world: World, serving: Serving) {
    this.#world = world
    this.#serving = serving
  }

  handle(session_id: SessionId, request: Request, exchange: Exchange): void {
    const { database, invariants, kernel } = this.#world
    if (Buffer.byteLength(request.body) > BODY_BYTES_MAX) invariants.undecodable(request.path, "its body is too large")
    const verb = request.path.split("/").at(-1) ?? ""
    const token = (request.headers["authorization"] ?? "").replace(/^Bearer /u, "")
    const caller = this.#serving.tokens.identify(token, kernel.now)
    const session = database.sessions.get(session_id)
    if (caller === undefined || session === undefined || !this.#may(caller, session, verb, request, token))
      return exchange.reply(401, refusal("AUTH", "no valid token for this session"))
    if (verb !== "INIT_HELLO") this.#serving.tokens.settle(caller)
    switch (verb) {
      case "INIT_HELLO":
        return this.#hello(caller, session, token, request, exchange)
      case "HEARTBEAT":
        return this.#heartbeat(caller, session, request, exchange)
      case "REQUEST_APPROVAL":
        return this.#approval(session, request, exchange)
      case "TERMINATE_SELF":
        return this.#terminate(caller, session, request, exchange)
      case "GET_SECRETS":
        return exchange.reply(200, JSON.stringify({ secrets: { key: CANARY } }))
      case "REPORT_STATUS":
        return this.#report(request, exchange)
      case "FETCH_DYNAMIC_CONFIG": {
        const config_version = this.#world.config_version
        const config = this.#world.setup.config(config_version)
        return exchange.reply(200, JSON.stringify({ config_version, config }))
      }
      case "events":
        return this.#serving.stream(session, Number(request.headers["last-event-id"] ?? 0), exchange)
      default:
        return exchange.reply(404, refusal("NOT_AVAILABLE", verb))
    }
  }

  #may(caller: Caller, session: SessionTable, verb: string, { headers }: Request, token: string): boolean {
    if (caller.session_id !== session.session_id) return false
    if (caller.standing === "bootstrap" && verb !== "INIT_HELLO") return false
    if (caller.standing === "superseded" && verb !== "HEARTBEAT") return false
    const job = headers["x-choir-job"]
    if (job === undefined) return true
    const job_id = jobOfToken(token, job)
    return job_id !== undefined && [...session.state.cores.values()].some((core) => core.job_id === job_id)
  }

  /** A body that choird's own schema refuses is a fault of the agent, whatever became of it on the way. */
  #read<A>(read: (text: string) => Result.Result<A, string>, request: Request, exchange: Exchange): A | undefined {
    const decoded = read(request.body)
    if (Result.isSuccess(decoded)) return decoded.success
    this.#world.invariants.undecodable(request.path, decoded.failure)
    exchange.reply(400, refusal("BAD_REQUEST", decoded.failure))
    return undefined
  }

  /** A transaction, after what it takes, and its answer; `away` when the database does not answer, though it may have committed. */
  #transaction<A>(commit: () => A, answer: (committed: A) => void, away: () => void): void {
    const { database, invariants, io, kernel } = this.#world
    const work = () => {
      const met = io.meets("query")
      if (met === "query-refused" || !this.#serving.mayWrite()) return away()
      const committed = commit()
      invariants.wrote(this.#serving.process)
      if (met === "query-unheard") return away()
      // Who dies at this moment has committed and answers nobody.
      if (met !== "choird-crash") answer(committed)
    }
    kernel.after(this.#serving.process, database.latency_ms(), database.isAway(kernel.now) ? away : work)
  }

  #hello(caller: Caller, session: SessionTable, token: string, request: Request, exchange: Exchange): void {
    const hello = this.#read(readHello, request, exchange)
    if (hello === undefined) return
    const liveness = this.#serving.livenessBySession.get(session.session_id)
    const page = hello.tail_from
    if (liveness?.epoch !== caller.epoch || (page !== undefined && caller.standing !== "current"))
      return exchange.reply(401, refusal("AUTH", "no valid token for this session"))
    liveness.last_heartbeat_ms = this.#world.kernel.now
    this.#transaction(
      () => (page === undefined ? this.#serving.tokens.lease(caller, this.#world.kernel.now) : token),
      (lease_token) => {
        const { events } = session
        const snapshot = page === undefined ? session.snapshot : undefined
        const from = page === undefined ? (snapshot?.tail_after.rev ?? 0) : page - 1
        const tail_events = events.slice(from, from + TAIL_EVENTS).map(({ event }) => event)
        if (page === undefined) Deferred.doneUnsafe(liveness.hello, Effect.void)
        const config_version = this.#world.config_version
        exchange.reply(
          200,
          writeHello({
            status: events.length === 0 ? "fresh" : "resumed",
            lease_token,
            epoch: caller.epoch,
            resource_bindings: BINDINGS,
            config_version,
            config: this.#world.setup.config(config_version),
            ...(snapshot === undefined ? {} : { snapshot }),
            tail_events,
            tail_more: from + tail_events.length < events.length
          })
        )
      },
      () => exchange.reply(500, refusal("INTERNAL", "the request failed"))
    )
  }

  #heartbeat(caller: Caller, session: SessionTable, request: Request, exchange: Exchange): void {
    const heartbeat = this.#read(readHeartbeat, request, exchange)
    if (heartbeat === undefined) return
    const config_version_latest = this.#world.config_version
    const answer = (reply: ReturnType<Database["append"]>) =>
      exchange.reply(200, writeHeartbeat({ ...reply, config_version_latest }))
    if (caller.standing === "superseded") return answer({ action: "FENCED", ack_rev: session.events.length })
    // Liveness is that it arrived, so that a slow database never looks like a dead agent (D8).
    const liveness = this.#serving.livenessBySession.get(session.session_id)
    const answered = this.#hears(liveness?.epoch === caller.epoch ? liveness : undefined)
    this.#transaction(
      () => this.#append(caller, session, heartbeat),
      (reply) => {
        answered()
        answer(reply)
      },
      () => {
        answered()
        answer({ ...Database.away, ack_rev: heartbeat.base_rev })
      }
    )
  }

  /** As choird's lifecycle counts it: an agent whose heartbeat is not answered yet is not silent. */
  #hears(liveness: Liveness | undefined): () => void {
    const { kernel } = this.#world
    if (liveness === undefined) return () => undefined
    liveness.last_heartbeat_ms = kernel.now
    liveness.unanswered += 1
    return () => {
      liveness.last_heartbeat_ms = kernel.now
      liveness.unanswered -= 1
    }
  }

  #append(caller: Caller, session: SessionTable, heartbeat: Heartbeat) {
    const { database, invariants } = this.#world
    const before = { rev: session.events.length, hash: session.hash }
    const reply = database.append(caller, heartbeat)
    invariants.answered(session, before, heartbeat.new_rev, reply)
    return reply
  }

  #approval(session: SessionTable, request: Request, exchange: Exchange): void {
    const asked = this.#read(readApproval, request, exchange)
    if (asked === undefined) return
    const { config_version, database, kernel, setup } = this.#world
    const { timeout_ms } = setup.config(config_version).approvals
    this.#transaction(
      () => database.approvals.ask(session, asked, kernel.now, timeout_ms),
      (answer) => {
        if (typeof answer === "string") return exchange.reply(409, refusal(answer, "it cannot be approved"))
        this.#serving.asked()
        return exchange.reply(200, JSON.stringify(answer))
      },
      () => exchange.reply(500, refusal("INTERNAL", "the request failed"))
    )
  }

  #terminate(caller: Caller, session: SessionTable, request: Request, exchange: Exchange): void {
    const goodbye = this.#read(readTerminate, request, exchange)
    if (goodbye === undefined) return
    const { final_hash, final_rev, reason, summary } = goodbye
    if (session.events.length !== final_rev || hex(session.hash) !== final_hash)
      return exchange.reply(409, refusal("NOT_FLUSHED", "the newest event here is another one"))
    if (summary !== undefined) session.summary = summary
    const liveness = this.#serving.livenessBySession.get(session.session_id)
    if (liveness?.epoch === caller.epoch) Deferred.doneUnsafe(liveness.goodbye, Effect.succeed(reason))
    exchange.reply(200, JSON.stringify({ ack: true }))
  }

  #report(request: Request, exchange: Exchange): void {
    if (this.#read(readReport, request, exchange) !== undefined) exchange.reply(200, JSON.stringify({ ack: true }))
  }
}
