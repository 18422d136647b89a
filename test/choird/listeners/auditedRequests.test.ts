import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { BODIES, openSession, type Verb, VERBS } from "../../support/agentSocket.ts"
import { OTHER_SESSION, SESSION, type World } from "../../support/control.ts"
import { openOperator } from "../../support/operatorSocket.ts"
import { ask, refusalOf } from "../../support/unixHttp.ts"
import { CHAT_TEXT_CHARS_MAX } from "#src/choird/queues/chatTextLimit.ts"
import { AGENT_REQUESTS_BURST } from "#src/choird/listeners/OpenSession.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

/** Stands in every body, and in no row. */
const CANARY = "canary-value"

type Options = Parameters<Effect.Success<typeof openSession>["call"]>[1]
type Refusal = readonly [name: string, verb: Verb, refused: string, options?: Options, prepare?: (world: World) => void]

const of = (verb: Verb, change: object) => ({ body: { ...BODIES[verb], ...change } })

/** What each verb refuses in each of the ways that there are. */
const EVERY_VERB: ReadonlyArray<Refusal> = VERBS.flatMap((verb): ReadonlyArray<Refusal> => [
  [`${verb}, an unknown token`, verb, "AUTH", { token: CANARY }],
  [`${verb}, another session's token`, verb, "AUTH", { token: "stranger" }],
  [`${verb}, another session named`, verb, "AUTH", { headers: { "x-choir-session-id": OTHER_SESSION } }],
  [`${verb}, what does not decode`, verb, "BAD_REQUEST", of(verb, { extra: CANARY })],
  [`${verb}, no JSON`, verb, "BAD_REQUEST", { body: `{${CANARY}` }],
  [`${verb}, another media type`, verb, "BAD_REQUEST", { headers: { "content-type": "text/plain" } }],
  [`${verb}, too large`, verb, "TOO_LARGE", { body: CANARY + " ".repeat(BODY_BYTES_MAX) }]
])

const ONE_VERB: ReadonlyArray<Refusal> = [
  ["a forged job token", "REPORT_STATUS", "AUTH", { headers: { "x-choir-job": CANARY } }],
  ["another agent's hello", "INIT_HELLO", "AUTH", of("INIT_HELLO", { agent_id: "bob" })],
  ["another image", "INIT_HELLO", "IMAGE_MISMATCH", of("INIT_HELLO", { image_version: "fffffff" })],
  ["other tools", "INIT_HELLO", "IMAGE_MISMATCH", of("INIT_HELLO", { tool_manifest_hash: "f".repeat(64) })],
  ["other skills", "INIT_HELLO", "IMAGE_MISMATCH", of("INIT_HELLO", { skill_manifest_hash: "f".repeat(64) })],
  ["the tail with the bootstrap token", "INIT_HELLO", "AUTH", of("INIT_HELLO", { tail_from: 1 })],
  ["a secret that is not bound", "GET_SECRETS", "UNBOUND", of("GET_SECRETS", { resources: ["bot-token"] })],
  ["an older epoch's heartbeat", "HEARTBEAT", "FENCED", { token: "older" }],
  ["an older epoch's call", "GET_SECRETS", "AUTH", { token: "older" }],
  ["an approval that nobody gives", "REQUEST_APPROVAL", "NOT_AVAILABLE", of("REQUEST_APPROVAL", { request_type: "x" })],
  ["an early goodbye", "TERMINATE_SELF", "NOT_FLUSHED", of("TERMINATE_SELF", { final_rev: 9 })],
  [
    "a tool that choird has not",
    "EXECUTE_HOST_TOOL",
    "NOT_AVAILABLE",
    of("EXECUTE_HOST_TOOL", { input: { a: CANARY } })
  ],
  [
    "a run that is over",
    "GET_SECRETS",
    "AUTH",
    {},
    (world) => {
      world.view = { ...world.view, epoch: 2 }
    }
  ],
  [
    "a run without resources",
    "GET_SECRETS",
    "NOT_READY",
    {},
    (world) => {
      world.view = { ...world.view, bindings: null }
    }
  ]
]

/** Refusals within an answer of 200. */
const PARTIAL: ReadonlySet<string> = new Set(["FENCED", "UNBOUND"])

describe("what the agent API refuses has one audit row (R77)", () => {
  for (const [name, verb, refused, options, prepare] of [...EVERY_VERB, ...ONE_VERB])
    it.effect(name, () =>
      Effect.gen(function* () {
        const { call, world } = yield* openSession
        prepare?.(world)
        const answer = yield* call(verb, options)
        if (!PARTIAL.has(refused)) assert.strictEqual(refusalOf(answer).type, refused)
        assert.lengthOf(world.audit, 1)
        const [row] = world.audit
        assert.strictEqual(row?.action, `rpc.${verb}`)
        assert.strictEqual(row?.session_id, SESSION)
        assert.match(row?.who ?? "", /^agent:(?:ada|unknown)$/u)
        assert.strictEqual(row?.detail["refused"], refused)
        assert.notInclude(JSON.stringify(row), CANARY)
      })
    )

  it.effect("a conflict of the log", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const answer = yield* call("HEARTBEAT", { body: { ...BODIES.HEARTBEAT, base_rev: 5, new_rev: 5 } })
      if (JSON.parse(answer.text).action === "CONFLICT")
        assert.strictEqual(world.audit[0]?.detail["refused"], "CONFLICT")
      else assert.lengthOf(world.audit, 0)
    })
  )

  it.effect("requests beyond the rate, and paths that do not exist", () =>
    Effect.gen(function* () {
      const { call, path, world } = yield* openSession
      for (const each of ["/agents/ada/start", "/rpc/NOPE", "/openapi.json"])
        yield* ask(path, { path: each, headers: { authorization: "Bearer lease" } })
      assert.deepStrictEqual(
        world.audit.map(({ action, detail }) => [action, detail["refused"]]),
        [
          ["rpc.unknown", "NOT_FOUND"],
          ["rpc.unknown", "NOT_FOUND"],
          ["rpc.unknown", "NOT_FOUND"]
        ]
      )
      for (let count = 3; count < AGENT_REQUESTS_BURST; count += 1) yield* call("REPORT_STATUS")
      yield* call("REPORT_STATUS")
      assert.lengthOf(world.audit, 4)
      assert.include(world.audit[3], { action: "rpc.REPORT_STATUS", who: "agent:unknown" })
      assert.strictEqual(world.audit[3]?.detail["refused"], "RATE_LIMITED")
    })
  )

  it.effect("an event stream that is not the caller's", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openSession
      const headers = { authorization: "Bearer lease" }
      yield* ask(path, { method: "GET", path: `/events?session_id=${OTHER_SESSION}`, headers })
      assert.deepStrictEqual(
        world.audit.map(({ action, detail }) => [action, detail["refused"]]),
        [["rpc.events", "AUTH"]]
      )
    })
  )

  it.effect("nothing is written of what is done", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      for (const verb of ["INIT_HELLO", "HEARTBEAT", "REPORT_STATUS", "FETCH_DYNAMIC_CONFIG"] as const)
        assert.strictEqual((yield* call(verb)).status, 200)
      assert.lengthOf(world.audit, 0)
    })
  )
})

type Asking = readonly [
  name: string,
  request: readonly [method: string, path: string, body?: unknown],
  row: readonly [action: string, refused: string, about?: string],
  prepare?: (world: World) => void
]

const stopped = (world: World) => {
  world.view = { ...world.view, status: "stopped" }
  world.row = { ...world.row, status: "stopped" }
}

const OPERATOR: ReadonlyArray<Asking> = [
  ["an agent that there is not", ["GET", "/agents/bob"], ["agents", "UNKNOWN_AGENT", "bob"]],
  ["the start of one", ["POST", "/agents/bob/start", {}], ["agent.start", "UNKNOWN_AGENT", "bob"]],
  ["the stop of one", ["POST", "/agents/bob/stop"], ["agent.stop", "UNKNOWN_AGENT", "bob"]],
  ["a build of one", ["POST", "/agents/bob/build", {}], ["agents.build", "UNKNOWN_AGENT", "bob"]],
  [
    "a start with a wrong body",
    ["POST", "/agents/ada/start", { dm: `${CANARY} ` }],
    ["agents.start", "BAD_REQUEST", "ada"]
  ],
  ["a name that is none", ["GET", "/agents/NO_SUCH_NAME"], ["agents", "BAD_REQUEST"]],
  ["a path that is none", ["GET", "/openapi.json"], ["unknown", "NOT_FOUND"]],
  [
    "a session that there is not",
    ["GET", "/sessions/zzzzzzzzzzzzzzzz/cores"],
    ["sessions.cores", "UNKNOWN_SESSION", "zzzzzzzzzzzzzzzz"]
  ],
  [
    "an empty instruction",
    ["POST", `/sessions/${SESSION}/inject`, { text: " " }],
    ["session.inject", "EMPTY", SESSION]
  ],
  [
    "too long an instruction",
    ["POST", `/sessions/${SESSION}/inject`, { text: CANARY + "x".repeat(CHAT_TEXT_CHARS_MAX) }],
    ["session.inject", "TOO_LARGE", SESSION]
  ],
  ["the end of no job", ["POST", `/sessions/${SESSION}/cancel`, {}], ["session.cancel", "NO_SUCH_JOB", SESSION]],
  [
    "an instruction to a stopped session",
    ["POST", `/sessions/${SESSION}/inject`, { text: CANARY }],
    ["session.inject", "NOT_RUNNING", SESSION],
    stopped
  ],
  [
    "more than a session can be asked for",
    ["POST", `/sessions/${SESSION}/inject`, { text: CANARY }],
    ["session.inject", "SIGNALS_FULL", SESSION],
    (world) => {
      world.full = true
    }
  ],
  [
    "a revision that is none",
    ["GET", `/sessions/${SESSION}/events?from=-1`],
    ["sessions.events", "BAD_REQUEST", SESSION]
  ],
  [
    "a message to an agent that does not run",
    ["POST", "/chat/ada/messages", { client_id: "a", text: CANARY }],
    ["chat.messages", "NOT_RUNNING", "ada"],
    stopped
  ],
  [
    "a message to a full inbox",
    ["POST", "/chat/ada/messages", { client_id: "a", text: CANARY }],
    ["chat.messages", "QUEUE_FULL", "ada"],
    (world) => {
      world.inboxFull = true
    }
  ],
  [
    "acknowledgements that are none",
    ["POST", "/chat/ada/ack", { outbox_ids: [CANARY] }],
    ["chat.ack", "BAD_REQUEST", "ada"]
  ],
  ["too many audit rows", ["GET", "/audit?last=1000000"], ["audit", "BAD_REQUEST"]]
]

describe("what the operator API refuses has one audit row (R77)", () => {
  for (const [name, [method, path, body], [action, refused, about], prepare] of OPERATOR)
    it.effect(name, () =>
      Effect.gen(function* () {
        const { path: socket, world } = yield* openOperator()
        prepare?.(world)
        const headers = { "content-type": "application/json" }
        const answer = yield* ask(socket, {
          method,
          path,
          headers: body === undefined ? {} : headers,
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
        assert.strictEqual(refusalOf(answer).type, refused)
        assert.lengthOf(world.audit, 1)
        const [row] = world.audit
        assert.deepStrictEqual([row?.who, row?.action, row?.detail["refused"]], ["operator", action, refused])
        if (about !== undefined) assert.strictEqual(row?.agent_id ?? row?.session_id, about)
        assert.notInclude(JSON.stringify(row), CANARY)
      })
    )

  it.effect("and they are listed, an agent's alone when asked for", () =>
    Effect.gen(function* () {
      const { api, path } = yield* openOperator()
      yield* ask(path, { method: "GET", path: "/agents/bob" })
      const [row] = yield* api.audit.list({ query: {} })
      assert.strictEqual(row?.action, "agents")
    })
  )
})
