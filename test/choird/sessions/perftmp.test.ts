import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { CallId, EDGE } from "#schema/Ids.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { prepare, decide } from "#src/choird/sessions/decideAppend.ts"
import { applyConsequences } from "#src/choird/sessions/consequences.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { DESK } from "../../support/stores.ts"
import { replayStart, lockSession, insertEvents } from "#src/choird/sessions/storedEvents.ts"
import { describeEngines } from "../../support/engines.ts"
import { newTalk, stores, Talk, userMsg, modelOutput, reply } from "../../support/stores.ts"

const longTurn = (talk: Talk, i: number, steps = 24) => {
  talk.commit(userMsg(i))
  for (let s = 0; s < steps; s++) {
    const call_id = CallId.make(`c-${talk.rev + 1}-0`)
    talk.commit(
      { event_type: "ModelOutput", lane: EDGE, payload: { call_id: CallId.make(`c-${talk.rev + 1}`), purpose: "turn", model: "small", tool_calls: [{ call_id, name: "choir.exec", input: { command: "ls -la " + s } }], finish_reason: "tool_calls", usage: { input_tokens: 1, output_tokens: 1 }, latency_ms: 1 } },
      { event_type: "ToolCallRequested", lane: EDGE, payload: { call_id, tool: "choir.exec", input: { command: "ls -la " + s }, effect: "workspace", locks: [] } },
      { event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id, locks: [] } },
      { event_type: "ToolResultCommitted", lane: EDGE, payload: { call_id, status: "success", summary: "exit 0", output: { stdout: "a\nb\nc " + s }, duration_ms: 1 } }
    )
  }
  talk.commit(modelOutput(`c-${talk.rev + 1}`), reply(i))
}

describeEngines("perf", (it, engine) => {
  it.effect("appends", () =>
    Effect.gen(function* () {
      const store = yield* EventStore
      const sql = yield* SqlClient.SqlClient
      for (const round of [1, 2]) {
        const talk = yield* newTalk
        while (talk.rev < 20000) longTurn(talk, talk.rev + 1)
        const total = talk.rev
        const beats = []
        for (let base = 0; base < total; base += 100) beats.push(talk.heartbeat(base, Math.min(total, base + 100)))
        const t0 = performance.now()
        for (const b of beats) { const r = yield* store.append(talk.caller, b); if (r.action !== "OK") throw new Error(JSON.stringify(r)) }
        const ms = performance.now() - t0
        console.log(engine.kind, "round", round, "events/s", (total / ms * 1000).toFixed(0), "ms/append", (ms / beats.length).toFixed(2))
        const t2 = performance.now()
        beats.map(prepare)
        console.log("prepare alone events/s", (total / (performance.now() - t2) * 1000).toFixed(0))
        const other = yield* newTalk
        const t3 = performance.now()
        for (let base = 0; base < total; base += 100) { const l = talk.links.slice(base, base + 100); yield* insertEvents(sql, other.caller.session_id, l, l.at(-1)!.hash) }
        console.log(engine.kind, "insert alone events/s", (total / (performance.now() - t3) * 1000).toFixed(0))
        const cfg = (yield* (yield* ConfigStore).current).config
        const time = (name: string, e: any) => Effect.gen(function*() { const t = performance.now(); for (let i = 0; i < 100; i++) yield* (typeof e === "function" ? e(i) : e); console.log(engine.kind, name, ((performance.now() - t) / 100).toFixed(2)) })
        const origin = { session_id: talk.caller.session_id, agent_id: talk.caller.agent_id, dm: DESK }
        yield* time("lockSession", lockSession(sql, talk.caller.session_id))
        yield* time("select1", sql`SELECT 1`)
        yield* time("consequences user", applyConsequences(sql, cfg, origin, talk.events.slice(0, 1)))
        yield* time("consequences reply", (i: number) => applyConsequences(sql, cfg, origin, [{ ...talk.events[98]!, rev: 100000 + round * 1000 + i } as any]))
        yield* time("fold", Effect.sync(() => foldAll(initialState, talk.events.slice(0, 98))))
        yield* time("lock+insert tx", (i: number) => { const l = talk.links.slice(0, 100); return Effect.flatMap(newTalk, (t) => sql.withTransaction(Effect.andThen(lockSession(sql, t.caller.session_id), insertEvents(sql, t.caller.session_id, l, l.at(-1)!.hash)))) })
        yield* time("newtalk", newTalk)
        const t4 = performance.now()
        for (let i = 0; i < 200; i++) yield* sql.withTransaction(sql`SELECT 1`)
        console.log(engine.kind, "empty tx ms", ((performance.now() - t4) / 200).toFixed(2))
      }
    }).pipe(Effect.provide(stores)), 120000
  )
})
