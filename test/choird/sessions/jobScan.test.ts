import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import { AgentType } from "#schema/JobProfile.ts"
import { CallId, coreLane, JobName } from "#schema/Ids.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { scanJobs } from "#src/choird/sessions/JobScan.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { started, stopped } from "../../support/jobEvents.ts"
import { describeStores } from "../../support/engines.ts"
import { newTalk, stores, type Talk, userMsg } from "../../support/stores.ts"

const SCOUT = AgentType.make("scout")

type End = Partial<Extract<EventDraft, { event_type: "CoreStopped" }>["payload"]>

const job = (name: string, end: End): ReadonlyArray<EventDraft> => {
  const job_name = JobName.make(name)
  const lane = coreLane(job_name)
  return [
    started(name, { start: { agent_type: SCOUT, pool: "research" } }),
    {
      event_type: "ModelOutput",
      lane,
      payload: {
        call_id: CallId.make(`out-${name}`),
        purpose: "turn",
        model: "small",
        text: "done",
        tool_calls: [],
        finish_reason: "stop",
        usage: { input_tokens: 1, output_tokens: 1 },
        latency_ms: 1
      }
    },
    stopped(name, { outcome: "error", summary: "the pin is 4711", ...end })
  ]
}

const writeback = {
  status: "done",
  progress: 90,
  summary: "the pin is 4711",
  reflection: { tests_run: [], blockers: [] }
} as const

const told = Effect.gen(function* () {
  const talk = (yield* newTalk).commit(
    userMsg(1),
    ...job("good", { outcome: "completed", writeback }),
    ...job("silent", { outcome: "completed", orphan: true }),
    ...job("lost", { outcome: "error", orphan: true })
  )
  assert.strictEqual((yield* (yield* EventStore).append(talk.caller, talk.heartbeat(0))).action, "OK")
  return talk
})

const auditOf = ({ caller: { agent_id } }: Talk) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Audit).last({ count: 20, agent_id })
    return rows.map(({ action, detail }) => `${action} ${(detail as { job_name: string }).job_name}`)
  })

describeStores("the scan of ended jobs", (it) => {
  it.effect("audits each failed job and each orphan once, whatever kept it from seeing their events", () =>
    Effect.gen(function* () {
      const talk = yield* told
      yield* scanJobs
      yield* scanJobs
      const rows = yield* auditOf(talk)
      assert.sameMembers([...rows], ["job.orphan silent", "job.failed lost", "job.orphan lost"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("sums the failures of an agent that fails one job after another, under one id too (R77)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* newTalk
      const { agent_id, session_id } = talk.caller
      for (let round = 0; round < 2; round += 1) {
        yield* sql`INSERT INTO choir_control.job_runs (session_id, agent_id, job_id, job_name, started_rev, started_at, ended_rev, ended_at, outcome)
          SELECT ${session_id}, ${agent_id}, 'job-' || n, 'again', 1, now(), 2, now() + n * interval '1 second', 'error'
          FROM generate_series(1, 500) AS n
          ON CONFLICT (session_id, job_id) DO UPDATE SET audited = false`
        yield* scanJobs
      }
      // Nothing waits in memory for a choird that is killed now.
      const rows = yield* (yield* Audit).last({ count: 20, agent_id })
      assert.deepStrictEqual(
        rows.map(({ action, count }) => `${action} ${count}`),
        ["job.failed 500", "job.failed 500"]
      )
      const others = Array.from({ length: 19 }, (_, index) => `job-${481 + index}`)
      const newest = { job_id: "job-500", job_name: "again", agent_type: null, outcome: "error" }
      assert.deepStrictEqual(rows[0]?.detail, { ...newest, others })
    }).pipe(Effect.provide(stores))
  )

  it.effect("repeats the rows of a job whose mark was lost", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* told
      yield* scanJobs
      yield* sql`UPDATE choir_control.job_runs SET audited = false WHERE session_id = ${talk.caller.session_id} AND job_name = 'lost'`
      yield* scanJobs
      const rows = yield* auditOf(talk)
      assert.strictEqual(rows.filter((row) => row === "job.failed lost").length, 2)
    }).pipe(Effect.provide(stores))
  )

  it.effect("leaves a job unmarked whose audit row the database did not take", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const talk = yield* told
      yield* sql`ALTER TABLE choir_control.audit ADD CONSTRAINT none CHECK (action NOT LIKE 'job.%') NOT VALID`
      yield* Effect.exit(scanJobs)
      yield* sql`ALTER TABLE choir_control.audit DROP CONSTRAINT none`
      assert.deepStrictEqual(yield* auditOf(talk), [])
      yield* scanJobs
      assert.lengthOf(yield* auditOf(talk), 3)
    }).pipe(Effect.provide(stores))
  )

  it.effect("lists orphans and what writebacks said without their words, and measures types by both", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const { agent_id } = (yield* told).caller
      const orphans = yield* runs.jobs(agent_id, { last: 10, orphans: true })
      assert.deepStrictEqual(
        orphans.map(({ job_name, lifecycle }) => `${job_name} ${lifecycle}`),
        ["lost FAILED", "silent TERMINATED"]
      )
      const good = (yield* runs.jobs(agent_id, { last: 10 })).find(({ job_name }) => job_name === "good")
      assert.deepStrictEqual(good?.writeback, { status: "done", progress: 90 })
      // The events of these tests are older than what counts.
      assert.deepStrictEqual(yield* runs.history(agent_id), {})
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE choir_control.job_runs SET started_at = now(), ended_at = now() WHERE agent_id = ${agent_id}`
      const history = yield* runs.history(agent_id)
      assert.strictEqual(history[SCOUT]?.total_runs, 3)
      assert.closeTo(history[SCOUT]?.success_rate ?? 0, 1 / 3, 1e-9)
      assert.strictEqual((yield* runs.orphans).get(agent_id), 2)
    }).pipe(Effect.provide(stores))
  )
})
