import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, JobName, type LaneId } from "#schema/Ids.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { applyRuns } from "#src/choird/sessions/runRows.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { started, stopped } from "../../support/jobEvents.ts"
import { describeStores } from "../../support/engines.ts"
import { modelOutput, newTalk, stores, type Talk, userMsg } from "../../support/stores.ts"

const JOB = JobName.make("tests")

const transition = (
  lane: LaneId,
  from: string,
  to: string,
  step: number,
  ended?: "completed" | "cancelled"
): EventDraft => ({
  event_type: "SkillTransitionCommitted",
  lane,
  payload: {
    skill: "tidy",
    from,
    to,
    on: from === "" ? "start" : "complete",
    step,
    ...(ended === undefined ? {} : { ended, output: { words: "the pin is 4711" } })
  }
})

const output = (lane: LaneId, id: string, cost_usd?: number): EventDraft => {
  const draft = modelOutput(id)
  return {
    ...draft,
    lane,
    payload: {
      ...draft.payload,
      usage: { input_tokens: 10, output_tokens: 2, ...(cost_usd === undefined ? {} : { cost_usd }) }
    }
  } as EventDraft
}

const begun = (job_id: string): EventDraft =>
  started(JOB, { job_id: CallId.make(job_id), start: { task_spec: "the pin is 4711" }, model: "small" })

const ended = (job_id: string, outcome: "completed" | "error"): EventDraft =>
  stopped(JOB, {
    job_id: CallId.make(job_id),
    outcome,
    summary: "the pin is 4711",
    usage: { input_tokens: 30, output_tokens: 6, cost_usd: 0.25 }
  })

/** A job that asks the user something, from its output to the question. */
const asks = (id: string): ReadonlyArray<EventDraft> => {
  const lane = coreLane(JOB)
  const draft = output(lane, id)
  const call_id = CallId.make(id)
  const input = { kind: "need_info", text: "the pin?" }
  return [
    {
      ...draft,
      payload: { ...draft.payload, tool_calls: [{ call_id, name: "choir-core-report", input }] }
    } as typeof draft,
    {
      event_type: "ToolCallRequested",
      lane,
      payload: { call_id, tool: "choir.core.report", input, effect: "none", locks: [] }
    },
    { event_type: "ToolCallCommitted", lane, payload: { call_id, locks: [] } },
    {
      event_type: "ToolResultCommitted",
      lane,
      payload: { call_id, status: "success", summary: "asked", duration_ms: 1 }
    }
  ]
}

/** Edge's skill over two steps, and a job whose skill ends with it. */
const told = (talk: Talk) =>
  talk.commit(
    userMsg(1),
    transition(EDGE, "", "look", 0),
    begun("j1"),
    transition(coreLane(JOB), "", "look", 0),
    output(coreLane(JOB), "c5", 0.1),
    output(coreLane(JOB), "c6", 0.2),
    transition(coreLane(JOB), "look", "", 2, "cancelled"),
    ended("j1", "error"),
    transition(EDGE, "look", "write", 0),
    output(EDGE, "c10"),
    transition(EDGE, "write", "done", 1, "completed"),
    transition(EDGE, "", "look", 0)
  )

const rowsOf = (talk: Talk) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { session_id } = talk.caller
    const skills =
      yield* sql`SELECT * FROM choir_control.skill_runs WHERE session_id = ${session_id} ORDER BY started_rev`
    const jobs = yield* sql`SELECT * FROM choir_control.job_runs WHERE session_id = ${session_id} ORDER BY started_rev`
    return { skills, jobs }
  })

const append = (talk: Talk, from: number, to: number) =>
  Effect.gen(function* () {
    assert.strictEqual((yield* (yield* EventStore).append(talk.caller, talk.heartbeat(from, to))).action, "OK")
  })

describeStores("runs of skills and jobs", (it) => {
  it.effect("follow from the events, whichever way these come, and can be made again from the log", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const whole = told(yield* newTalk)
      const single = told(yield* newTalk)
      yield* append(whole, 0, whole.rev)
      for (let rev = 0; rev < single.rev; rev += 1) {
        yield* append(single, rev, rev + 1)
        // Sent twice, it counts once.
        yield* append(single, rev, rev + 1)
      }
      const kept = yield* rowsOf(single)
      const named = ({ skills, jobs }: typeof kept) =>
        [...skills, ...jobs].map((row) => ({ ...row, agent_id: "", session_id: "" }))
      assert.deepStrictEqual(named(yield* rowsOf(whole)), named(kept))
      yield* sql`DELETE FROM choir_control.skill_runs WHERE session_id = ${single.caller.session_id}`
      yield* sql`DELETE FROM choir_control.job_runs WHERE session_id = ${single.caller.session_id}`
      yield* applyRuns(single.caller, initialState, single.events)
      assert.deepStrictEqual(yield* rowsOf(single), kept)
    }).pipe(Effect.provide(stores))
  )

  it.effect("say how each ended, after how many steps and at what cost, and hold no words", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const talk = told(yield* newTalk)
      const { agent_id } = talk.caller
      yield* append(talk, 0, talk.rev)
      const skills = yield* runs.skills(agent_id, { last: 10 })
      assert.deepStrictEqual(
        skills.map(({ cost_usd, lane, outcome, state, steps, tokens }) => [
          lane,
          state,
          outcome,
          steps,
          tokens,
          cost_usd
        ]),
        [
          ["edge", "look", null, 0, 0, 0],
          ["core:tests", "look", "cancelled", 2, 24, 0.3],
          ["edge", "done", "completed", 1, 12, 0]
        ]
      )
      assert.lengthOf(yield* runs.skills(agent_id, { skill: "other", last: 10 }), 0)
      assert.lengthOf(yield* runs.skills(agent_id, { skill: "tidy", last: 2 }), 2)
      const [job, ...others] = yield* runs.jobs(agent_id, { last: 10 })
      assert.lengthOf(others, 0)
      assert.deepInclude(job, { job_name: JOB, outcome: "error", tokens: 36, cost_usd: 0.25, started_rev: 3 })
      assert.strictEqual(job?.ended_at, "2026-01-01T00:00:00.000Z")
      assert.notInclude(inspect(yield* rowsOf(talk), { depth: 9 }), "4711")
    }).pipe(Effect.provide(stores))
  )

  it.effect("take an agent's claims without failing the append: huge costs, and a job id that is used again", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const talk = (yield* newTalk).commit(
        userMsg(1),
        begun("j1"),
        transition(coreLane(JOB), "", "look", 0),
        output(coreLane(JOB), "c4", Number.MAX_VALUE),
        output(coreLane(JOB), "c5", Number.MAX_VALUE),
        transition(coreLane(JOB), "look", "", 2, "cancelled"),
        ended("j1", "error"),
        begun("j1")
      )
      for (let rev = 0; rev < talk.rev; rev += 1) yield* append(talk, rev, rev + 1)
      const [job] = yield* runs.jobs(talk.caller.agent_id, { last: 10 })
      assert.deepInclude(job, { started_rev: 8, outcome: null })
    }).pipe(Effect.provide(stores))
  )

  it.effect("take claims of more steps and tokens than their columns hold", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [largest, lane] = [Number.MAX_SAFE_INTEGER, coreLane(JOB)]
      const claim = (id: string) => {
        const draft = output(lane, id, 1e6)
        return {
          ...draft,
          payload: { ...draft.payload, usage: { input_tokens: largest, output_tokens: 2, cost_usd: 1e6 } }
        }
      }
      const done = { steps: largest, tool_calls: 0, files_read: 0, files_changed: 0, commands: 0, tokens: largest }
      const talk = (yield* newTalk).commit(
        userMsg(1),
        begun("j1"),
        transition(lane, "", "look", 0),
        ...["c4", "c5"].map((id) => claim(id) as EventDraft),
        transition(lane, "look", "", 2, "cancelled"),
        stopped(JOB, { job_id: CallId.make("j1"), work: { ...done, started_at: "2026-01-01T00:00:00.000Z" } })
      )
      yield* append(talk, 0, 4)
      // As after a thousand such heartbeats.
      const { session_id } = talk.caller
      yield* sql`UPDATE choir_control.skill_runs SET tokens = 9223372036854775000, cost_nano_usd = 9223372036854775000
        WHERE session_id = ${session_id}`
      yield* append(talk, 4, talk.rev)
      const { jobs, skills } = yield* rowsOf(talk)
      assert.strictEqual(jobs[0]?.["steps"], 2 ** 31 - 1)
      assert.isAtMost(Number(skills[0]?.["tokens"]), 2 * largest)
    }).pipe(Effect.provide(stores))
  )

  it.effect("carry what the skill was, what began it, and how its result was judged", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const lane = coreLane(JOB)
      const more = (draft: EventDraft, payload: object) =>
        ({ ...draft, payload: { ...draft.payload, ...payload } }) as typeof draft
      const verdict = (score: number) => ({ judged: { score, model: "large", call_id: "v1" } })
      const talk = (yield* newTalk).commit(
        userMsg(1),
        begun("j1"),
        more(transition(lane, "", "look", 0), {
          version: "1.2.0",
          execution_class: "probabilistic",
          tier: "audit",
          trigger: "task_type: scout"
        }),
        output(lane, "c4"),
        more(transition(lane, "look", "look", 1), { on: "control:retry", confidence: 0.4, ...verdict(0.3) }),
        output(lane, "c6"),
        more(transition(lane, "look", "done", 2, "completed"), { confidence: 0.8, ...verdict(0.95) }),
        ended("j1", "completed")
      )
      const { agent_id } = talk.caller
      const evidence = {
        execution_class: "probabilistic",
        tier: "audit",
        trigger: "task_type: scout",
        retries: 1
      } as const
      yield* append(talk, 0, 5)
      const [first] = yield* runs.skills(agent_id, { last: 1 })
      assert.deepInclude(first, { ...evidence, confidence: 0.4, judge_score: 0.3, verdict: "failed" })
      yield* append(talk, 5, talk.rev)
      const passed = { ...evidence, confidence: 0.8, judge_score: 0.95, verdict: "passed" } as const
      assert.deepInclude((yield* runs.skills(agent_id, { last: 1 }))[0], { ...passed, version: "1.2.0" })
      assert.deepInclude((yield* runs.jobs(agent_id, { last: 1 }))[0], passed)
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "show a job from its request to its end: PENDING, INITIALIZING, BUSY, READY while it asks, TERMINATED",
    () =>
      Effect.gen(function* () {
        const runs = yield* Runs
        const result = (call_id: string, status: "rejected" | "success"): EventDraft => ({
          event_type: "ToolResultCommitted",
          lane: EDGE,
          payload: { call_id: CallId.make(call_id), status, summary: "x", duration_ms: 1 }
        })
        const request = (id: string): ReadonlyArray<EventDraft> => {
          const draft = modelOutput(id)
          const call_id = CallId.make(id)
          const input = { job_name: JOB, task_spec: "the pin is 4711" }
          const calls = [{ call_id, name: "choir-core-spawn", input }]
          return [
            { ...draft, payload: { ...draft.payload, tool_calls: calls } } as typeof draft,
            {
              event_type: "ToolCallRequested",
              lane: EDGE,
              payload: { call_id, tool: "choir.core.spawn", input, effect: "workspace", locks: [] }
            }
          ]
        }
        const committed: EventDraft = {
          event_type: "ToolCallCommitted",
          lane: EDGE,
          payload: { call_id: CallId.make("j2"), locks: [] }
        }
        const talk = (yield* newTalk).commit(
          userMsg(1),
          ...request("j1"),
          result("j1", "rejected"),
          ...request("j2"),
          committed,
          begun("j2"),
          result("j2", "success"),
          output(coreLane(JOB), "c9"),
          ...asks("q1"),
          {
            event_type: "InjectedInstruction",
            lane: coreLane(JOB),
            payload: { target: coreLane(JOB), source: "user", content: "4711" }
          },
          ended("j2", "completed")
        )
        const { agent_id } = talk.caller
        const seen: Array<ReadonlyArray<string>> = []
        for (let rev = 0; rev < talk.rev; rev += 1) {
          yield* append(talk, rev, rev + 1)
          seen.push((yield* runs.jobs(agent_id, { last: 9 })).map(({ job_id, lifecycle }) => `${job_id} ${lifecycle}`))
        }
        assert.deepStrictEqual(seen, [
          [],
          [],
          ["j1 PENDING"],
          [],
          [],
          ["j2 PENDING"],
          ["j2 PENDING"],
          ["j2 INITIALIZING"],
          ["j2 INITIALIZING"],
          ["j2 BUSY"],
          ["j2 BUSY"],
          ["j2 BUSY"],
          ["j2 BUSY"],
          ["j2 READY"],
          ["j2 BUSY"],
          ["j2 TERMINATED"]
        ])
        const [job] = yield* runs.jobs(agent_id, { last: 1 })
        assert.isNotNull(job?.requested_at)
        assert.isNotNull(job?.worked_at)
        const kept = yield* rowsOf(talk)
        const sql = yield* SqlClient.SqlClient
        yield* sql`DELETE FROM choir_control.job_runs WHERE session_id = ${talk.caller.session_id}`
        yield* applyRuns(talk.caller, initialState, talk.events)
        assert.deepStrictEqual(yield* rowsOf(talk), kept)
        assert.notInclude(inspect(kept, { depth: 9 }), "4711")
      }).pipe(Effect.provide(stores))
  )
})
