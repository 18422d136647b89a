/**
 * Every endpoint of the operator's API with values that no program of ours sends: characters that Postgres does not store, numbers beyond its
 * integers, names that are paths. choird's own services and a database answer; nothing of it may be a defect.
 */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { layerOperatorServer } from "#src/choird/api/operator/OperatorServer.ts"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { database, layerLife, makeAgentHome } from "../../support/choird.ts"
import { ask } from "../../support/unixHttp.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"
import { BINDINGS } from "../../support/stores.ts"

type Json = Readonly<Record<string, unknown>>

/** In the places of texts; those in addresses are encoded. */
const TEXTS = [
  "\0",
  "a\0b",
  "\ud800",
  "x\udfff",
  "__proto__",
  "constructor",
  "../../etc/passwd",
  "'; DROP TABLE x; --",
  "%",
  "\u202e\u200b",
  "9223372036854775808",
  "a".repeat(5000),
  ""
]
const NUMBERS = [-1, 0, 1.5, 2 ** 31, 2 ** 53, 1e21, 1e308]

/** Where a hostile value goes, and for a number another list of them. */
const TEXT = "<text>"
const NUMBER = "<number>"

/** Method, path, and body. A session, an agent and an approval that are there or not, and values in each other place. */
const REQUESTS: ReadonlyArray<readonly [method: "GET" | "POST", path: string, body?: Json]> = [
  ["GET", "/agents/<text>"],
  ["GET", "/agents/AGENT/skills/<text>"],
  ["GET", "/agents/AGENT/skills/<text>/files"],
  ["GET", "/agents/AGENT/skill-runs?skill=<text>"],
  ["GET", "/agents/AGENT/skill-runs?last=<number>"],
  ["GET", "/agents/AGENT/job-runs?last=<number>"],
  ["GET", "/agents/AGENT/memory?prefix=<text>"],
  ["GET", "/agents/AGENT/memory/export?after=<text>"],
  ["GET", "/sessions?agent_id=<text>"],
  ["GET", "/sessions/<text>"],
  ["GET", "/sessions/SESSION/events?from=<number>"],
  ["GET", "/sessions/SESSION/events?last=<number>"],
  ["GET", "/sessions/SESSION/events?from=<text>"],
  ["GET", "/sessions/SESSION/context?lane=<text>"],
  ["GET", "/approvals?agent_id=<text>"],
  ["GET", "/approvals/<text>"],
  ["GET", "/approvals/<number>"],
  ["GET", "/approvals/999999999999999999"],
  ["GET", "/grants?agent_id=<text>"],
  ["GET", "/audit?last=<number>"],
  ["GET", "/audit?agent_id=<text>"],
  ["GET", "/config/versions/<number>"],
  ["GET", "/config/versions/<text>"],
  ["POST", "/agents/AGENT/start", { workspace: TEXT }],
  ["POST", "/agents/AGENT/models", { llm: TEXT }],
  ["POST", "/agents/AGENT/memory/show", { key: TEXT }],
  ["POST", "/agents/AGENT/memory/show", { id: TEXT }],
  ["POST", "/agents/AGENT/memory/search", { query: TEXT, store: "knowledge", mode: "hybrid", limit: 3 }],
  ["POST", "/agents/AGENT/memory/search", { query: "tea", store: "session", mode: "keyword", limit: NUMBER }],
  ["POST", "/agents/AGENT/memory/facts", { key: TEXT, text: "tea" }],
  ["POST", "/agents/AGENT/memory/facts", { key: null, text: TEXT }],
  ["POST", "/agents/AGENT/memory/facts/delete", { key: TEXT }],
  ["POST", "/agents/AGENT/memory/facts/trust", { key: TEXT }],
  ["POST", "/agents/AGENT/memory/forget/plan", { type: "words", words: TEXT }],
  ["POST", "/agents/AGENT/memory/forget/plan", { type: "fact", key: TEXT }],
  ["POST", "/agents/AGENT/memory/forget/plan", { type: "document", id: TEXT }],
  [
    "POST",
    "/agents/AGENT/memory/forget/plan",
    { type: "span", session_id: "SESSION", first_rev: NUMBER, last_rev: NUMBER }
  ],
  ["POST", "/sessions/SESSION/inject", { text: TEXT }],
  ["POST", "/sessions/SESSION/inject", { text: "tea", request_id: TEXT, wait_ms: NUMBER }],
  ["POST", "/sessions/SESSION/answer", { text: TEXT, job_name: TEXT }],
  ["POST", "/sessions/SESSION/cancel", { job_name: TEXT }],
  ["POST", "/sessions/SESSION/skill", { skill: TEXT, input: { a: TEXT } }],
  ["POST", "/sessions/SESSION/compact", { lane: TEXT }],
  ["POST", "/sessions/<text>/verify"],
  ["POST", "/chat/AGENT/messages", { client_id: TEXT, text: "tea" }],
  ["POST", "/chat/AGENT/messages", { client_id: "c", text: TEXT }],
  ["POST", "/chat/AGENT/commands", { client_id: "c", text: TEXT }],
  ["POST", "/chat/AGENT/commands", { client_id: "c", text: `/memory ${TEXT}` }],
  ["POST", "/chat/AGENT/commands", { client_id: "c", text: `/forget ${TEXT}` }],
  ["POST", "/chat/AGENT/commands", { client_id: "c", text: `/grants revoke ${TEXT}` }],
  ["POST", "/chat/AGENT/commands", { client_id: "c", text: `/approve ${TEXT} ${TEXT}` }],
  ["POST", "/chat/AGENT/ack", { outbox_ids: [TEXT] }],
  ["POST", "/approvals/1/approve", { hash: TEXT }],
  ["POST", "/approvals/<number>/reject", { hash: "00000000", reason: TEXT }],
  ["POST", "/grants/<text>/revoke"],
  ["POST", "/dms/pair", { gateway: TEXT, name: TEXT, admin: false }],
  ["POST", "/config/plan", { plan: TEXT }],
  ["POST", "/config/rollback", { version: NUMBER }],
  ["POST", "/workspaces/<text>/trust"],
  ["POST", "/workspaces/<text>/reset"],
  ["POST", "/skills/offer", { source: { type: "git", url: TEXT, ref: TEXT }, target: { type: "global" } }],
  [
    "POST",
    "/skills/offer",
    {
      source: { type: "files", from: TEXT, files: [{ path: TEXT, executable: false, base64: TEXT }] },
      target: { type: "global" }
    }
  ],
  ["POST", "/agents/AGENT/tools/try", { tool: TEXT, input: { a: TEXT } }],
  ["POST", "/agents/AGENT/skills/try", { skill: TEXT, input: { a: TEXT } }]
]

const filled = (value: unknown, text: string, number: number): unknown => {
  if (value === NUMBER) return number
  if (typeof value === "string") return value.replaceAll(TEXT, () => text)
  if (Array.isArray(value)) return value.map((item) => filled(item, text, number))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, text, number)]))
}

/** A lone surrogate has no form in an address. */
const encoded = (text: string) => encodeURIComponent(text.toWellFormed())

describe("the operator's API", () => {
  it.live(
    `answers ${REQUESTS.length} kinds of hostile requests without a defect`,
    () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeAgentHome()
        const services = yield* Layer.build(
          layerOperatorServer("0.0.0").pipe(Layer.provide(Backup.layer), Layer.provideMerge(layerLife(home)))
        )
        yield* Context.get(services, AgentSchemas).ensure(agent_id)
        const sessions = Context.get(services, SessionStore)
        const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
        const known = (text: string) => text.replaceAll("AGENT", agent_id).replaceAll("SESSION", session_id)
        const path = join(home, "socks", "choird.sock")
        const odd: Array<string> = []
        let asked = 0
        const send = Effect.fnUntraced(function* (method: "GET" | "POST", path_of: string, body: unknown) {
          asked += 1
          const headers = body === undefined ? {} : { "content-type": "application/json" }
          const text = body === undefined ? {} : { body: known(JSON.stringify(body)) }
          const answer = yield* ask(path, { method, path: path_of, headers, ...text })
          if (answer.status >= 500 || (answer.status >= 400 && !/^\{"error":\{"type":"[A-Z_]+"/u.test(answer.text)))
            odd.push(
              `${answer.status} ${method} ${path_of.slice(0, 100)} ${JSON.stringify(body ?? null).slice(0, 100)}: ${answer.text.slice(0, 200)}`
            )
        })
        for (const [method, where, body] of REQUESTS) {
          const place = known(where)
          const values = JSON.stringify([where, body]).includes(NUMBER)
            ? NUMBERS.map((number) => [TEXTS[asked % TEXTS.length] ?? "", number] as const)
            : TEXTS.map((text) => [text, 0] as const)
          for (const [text, number] of values)
            yield* send(
              method,
              place.replaceAll(TEXT, () => encoded(text)).replaceAll(NUMBER, () => String(number)),
              body === undefined ? undefined : filled(body, text, number)
            )
        }
        assert.deepStrictEqual(odd, [])
        const status = yield* ask(path, { method: "GET", path: "/status" })
        assert.strictEqual(status.status, 200)
      }).pipe(Effect.provide(database)),
    LAYER_MS_MAX
  )
})
