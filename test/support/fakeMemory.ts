/** What the fake choird answers about an agent's memory. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { NotFound } from "#schema/ApiError.ts"
import { type AgentId, CallId, EDGE, Rev, type SessionId } from "#schema/Ids.ts"
import { DocumentId, type Fact, FactKey, type MemoryHit } from "#schema/Memory.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"

const idOf = (n: number) => DocumentId.make(`00000000-0000-4000-8000-00000000000${n}`)
const AT = "2026-01-02T03:04:05.678Z"

export const FACT: Fact = {
  id: idOf(2),
  key: FactKey.make("user.city"),
  text: "Lives in Lyon",
  untrusted: false,
  source: { kind: "operator", who: "operator" },
  created_at: AT,
  valid_to: null,
  superseded_by: null
}

const before = (session_id: SessionId): Fact => ({
  ...FACT,
  id: idOf(1),
  text: "Lives in Paris\u001b[2J",
  untrusted: true,
  source: { kind: "agent", session_id, rev: Rev.make(7), call_id: CallId.make("c-7-0"), lane: EDGE },
  valid_to: AT,
  superseded_by: idOf(2)
})

const part = (session_id: SessionId): MemoryHit => ({
  id: idOf(3),
  store: "session",
  tier: "mid_term",
  session_id,
  lane: EDGE,
  first_rev: Rev.make(12),
  last_rev: Rev.make(15),
  said_at: AT,
  text: "user: I moved to Lyon"
})

export const fakeMemory = (
  calls: Array<{ readonly name: string; readonly id?: string; readonly input?: unknown }>,
  session_id: SessionId,
  agent_id: AgentId
) => {
  const noted = <A>(name: string, id: string, input: unknown, answer: A) =>
    Effect.sync(() => {
      calls.push({ name, id, input })
      return answer
    })
  const unknown = () =>
    Effect.fail(
      new NotFound({ error: { type: "UNKNOWN_MEMORY", message: `${agent_id} remembers nothing of that name` } })
    )
  const isCity = (name: object) => "key" in name && name.key === FACT.key
  return HttpApiBuilder.group(OperatorApi, "memory", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        list: ({ params: { id }, query }) =>
          noted("list memory", id, query, {
            summary: { facts: 2, sessions: 3, chunks: 40, summaries: 1, detail: 9 },
            facts: [FACT]
          }),
        show: ({ payload }) => {
          if (isCity(payload)) return Effect.succeed({ type: "fact" as const, values: [FACT, before(session_id)] })
          return "id" in payload ? Effect.succeed({ type: "session" as const, hit: part(session_id) }) : unknown()
        },
        trust: ({ params: { id }, payload }) => (isCity(payload) ? noted("trust fact", id, payload, FACT) : unknown()),
        search: ({ params: { id }, payload }) =>
          noted("search memory", id, payload, {
            hits: payload.query === "nothing" ? [] : [part(session_id)],
            ranked_by: "words" as const
          }),
        set: ({ params: { id }, payload }) =>
          noted("set fact", id, payload, { fact: FACT, change: "updated" as const }),
        delete: ({ params: { id }, payload }) =>
          isCity(payload) ? noted("delete fact", id, payload, FACT) : unknown(),
        plan: ({ params: { id }, payload }) =>
          noted("plan", id, payload, {
            facts: payload.type === "fact" ? [FACT] : [],
            sessions:
              payload.type === "words" && payload.words === "nothing"
                ? []
                : [{ session_id, events: 3, archived: false, running: true }]
          }),
        forget: ({ params: { id }, payload }) =>
          noted("forget", id, payload, {
            agent_id: id,
            forgotten_at: AT,
            facts: 1,
            events: 3,
            chunks: 2,
            vectors: 3,
            texts: 1,
            sessions: [session_id],
            restarted: true,
            left: ["backups that were made before keep it"]
          }),
        page: ({ query: { after } }) =>
          Effect.succeed(
            after === undefined
              ? { facts: [FACT, before(session_id)], parts: [], next: "parts" }
              : { facts: [], parts: [part(session_id)], next: null }
          )
      })
    )
  )
}
