/** What a job was handed of a text that is forgotten later: a copy in the event of its start, as its prompt showed it. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, JobName, Rev, type SessionId, Sha256 } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Forgetting } from "#src/choird/memory/Forgetting.ts"
import { SessionMemory } from "#src/choird/memory/SessionMemory.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { storedEvent } from "#src/choird/memory/forgetTarget.ts"
import { storedLog } from "#src/choird/sessions/storedEvents.ts"
import { describeStores } from "../support/engines.ts"
import { makeMemory } from "../support/memoryRows.ts"
import { DESK, message, modelOutput, newTalk, reply, stores } from "../support/stores.ts"
import { toolText } from "#src/agent/model/prompt/toolText.ts"

const SECRET = "merganser"
const PATH = "notes/dentist.txt"
const CONTENT = `my dentist is\nDoctor ${SECRET}\n`
const SHA = Sha256.make("a".repeat(64))

const forgetting = Layer.fresh(Forgetting.layer).pipe(
  Layer.provide(Layer.mock(Lifecycle, { pause: () => Effect.succeed(true), wake: () => Effect.succeed(true) })),
  Layer.provide(Layer.mock(SessionMemory, { again: () => Effect.void }))
)

/** Edge reads a file in the first turn, and hands the result to a job in the second. */
const handedOver = Effect.gen(function* () {
  const inbox = yield* Inbox
  const talk = yield* newTalk
  const { agent_id, session_id } = talk.caller
  yield* makeMemory(agent_id)
  const said = Effect.fnUntraced(function* (text: string) {
    const received = yield* inbox.receive(message(agent_id, `m${talk.rev}`, text))
    if (received.type === "full") return assert.fail("the inbox is full")
    talk.commit({
      event_type: "UserMsg",
      lane: EDGE,
      payload: { inbox_id: received.inbox_id, dm: DESK, text, attachments: [] }
    })
    return received.inbox_id
  })
  const call = (name: string, input: object) => {
    const call_id = CallId.make(`c-${talk.rev + 1}-0`)
    const output = modelOutput(`c-${talk.rev + 1}`, "") as Extract<EventDraft, { event_type: "ModelOutput" }>
    talk.commit({ ...output, payload: { ...output.payload, tool_calls: [{ call_id, name, input }] } } as EventDraft)
    return call_id
  }
  const first = yield* said("read it")
  const from = talk.rev
  const call_id = call("choir-fs-read", { path: PATH })
  const output = {
    path: PATH,
    content: CONTENT,
    first_line: 1,
    last_line: 2,
    lines_total: 2,
    sha256: SHA,
    truncated: false
  }
  talk.commit({
    event_type: "ToolCallRequested",
    lane: EDGE,
    payload: { call_id, tool: "choir.fs.read", input: { path: PATH }, locks: [], effect: "none" }
  } as never)
  talk.commit({ event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id } } as never)
  const result = {
    event_type: "ToolResultCommitted",
    lane: EDGE,
    payload: {
      call_id,
      status: "success",
      summary: "2 lines",
      output,
      duration_ms: 1,
      reads: [{ path: PATH, sha256: SHA }]
    }
  } as never
  talk.commit(result)
  const to = talk.rev
  talk.commit(modelOutput(`c-${talk.rev + 1}`, "Read."), reply(first, "Read."))
  yield* said("dig")
  const spawn = call("choir-core-spawn", {
    job_name: "dig",
    task_spec: "dig",
    context_bundle: { excerpts_from: [PATH] }
  })
  const text = toolText(
    { payload: (result as { payload: never }).payload, rev: to } as never,
    "choir-fs-read",
    false,
    new Set()
  )
  talk.commit({
    event_type: "ToolCallRequested",
    lane: EDGE,
    payload: {
      call_id: spawn,
      tool: "choir.core.spawn",
      input: { job_name: "dig", task_spec: "dig", context_bundle: { excerpts_from: [PATH] } },
      locks: [],
      effect: "none"
    }
  } as never)
  const job_name = JobName.make("dig")
  talk.commit({ event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id: spawn } } as never)
  talk.commit({
    event_type: "CoreStarted",
    lane: coreLane(job_name),
    payload: {
      job_id: spawn,
      job_name,
      model: "small",
      budgets: { max_steps: 1, max_tool_calls: 1, wall_time_ms: 1, max_injections: 1 },
      start: {
        job_id: spawn,
        job_name,
        task_spec: "dig",
        context_bundle: {
          facts: [],
          excerpts: [],
          constraints: [],
          handed: [{ call_id, tool: "choir-fs-read", text, reads: [{ path: PATH, sha256: SHA }] }]
        },
        tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
        verbosity: "normal"
      }
    }
  } as never)
  const store = yield* EventStore
  const stays = yield* store.append(talk.caller, talk.heartbeat(0))
  assert.strictEqual(stays.action, "OK", JSON.stringify(stays))
  const sessions = yield* SessionStore
  yield* sessions.end(session_id, "stopped")
  return { agent_id, session_id, first_rev: Rev.make(from), last_rev: Rev.make(to) }
})

/** The types of the stored events that hold it. */
const left = (session_id: SessionId) =>
  Effect.map(Stream.runCollect(storedLog(session_id, 1000).rows(1)), (rows) =>
    [...rows].flatMap((row) => {
      const event = storedEvent(row)
      return event !== undefined && JSON.stringify(event.payload).includes(SECRET) ? [event.event_type] : []
    })
  )

describeStores("a text that was handed to a job, once it is forgotten", (it) => {
  it.effect("is gone with the part of the session that it was read in", () =>
    Effect.gen(function* () {
      const { agent_id, ...span } = yield* handedOver
      assert.deepStrictEqual(yield* left(span.session_id), ["ToolResultCommitted", "CoreStarted"])
      yield* (yield* Forgetting).forget(agent_id, { type: "span", ...span }, "operator")
      assert.deepStrictEqual(yield* left(span.session_id), [])
    }).pipe(Effect.provide(forgetting.pipe(Layer.provideMerge(stores))))
  )
  it.effect("is gone with its words, two of which a line's end stands between", () =>
    Effect.gen(function* () {
      const { agent_id, session_id } = yield* handedOver
      yield* (yield* Forgetting).forget(
        agent_id,
        { type: "words", words: `my dentist is Doctor ${SECRET}` },
        "operator"
      )
      assert.deepStrictEqual(yield* left(session_id), [])
    }).pipe(Effect.provide(forgetting.pipe(Layer.provideMerge(stores))))
  )
})
