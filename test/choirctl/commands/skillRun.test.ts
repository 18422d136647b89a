import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CallId, coreLane, JobName, Rev, SignalId } from "#schema/Ids.ts"
import type { PrintedEvent } from "#schema/SessionsApi.ts"
import { SIGNAL_WAIT_MS_MAX } from "#src/shared/limits.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { type Call, fakeChoird, printedEvent, SESSION } from "../../support/fakeChoird.ts"

const job_name = JobName.make("run-tidy")
const begun = { signal_id: SignalId.make("5"), rev: Rev.make(12), refused: null }

/** The end of a job. */
const stopped = (name: JobName, outcome: "completed" | "error", summary: string): PrintedEvent => ({
  ...printedEvent,
  event: {
    v: 1,
    rev: Rev.make(20),
    event_type: "CoreStopped",
    lane: coreLane(name),
    payload: {
      job_id: CallId.make("j"),
      job_name: name,
      outcome,
      summary,
      usage: { input_tokens: 1, output_tokens: 1 }
    },
    created_at: "2026-01-02T03:04:05.678Z"
  }
})

/** What choird was asked, without the random id of each request. */
const asked = (calls: ReadonlyArray<Call>) =>
  calls.map(({ input, ...call }) => {
    const { request_id: _, ...rest } = input as Readonly<Record<string, unknown>>
    return { ...call, input: rest }
  })

describe("choirctl skill run", () => {
  it.effect("orders a skill with an input from the line or from a file, and names its job", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home, { signal: Effect.succeed(begun) })
      const file = join(yield* temporaryFolder, "input.json")
      writeFileSync(file, '{"goal":"tidy up"}')
      for (const input of ['{"goal":"tidy up"}', file]) {
        const ran = yield* choirctl(home, ["skill", "run", SESSION, "tidy", "--input", input])
        assert.deepStrictEqual(ran, { code: 0, out: "runs as the job run-tidy, from revision 12\n", err: "" })
      }
      const input = { skill: "tidy", input: { goal: "tidy up" }, wait_ms: SIGNAL_WAIT_MS_MAX }
      const call = { name: "startSkill", id: SESSION, input }
      assert.deepStrictEqual(asked(calls), [call, call])
    })
  )

  it.effect("refuses an input that is neither JSON nor a file of it, and asks choird nothing", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const file = join(yield* temporaryFolder, "input.json")
      writeFileSync(file, "goal: tidy up")
      for (const input of ["{goal", file]) {
        const { code, err } = yield* choirctl(home, ["skill", "run", SESSION, "tidy", "--input", input])
        assert.strictEqual(code, 2)
        assert.include(err, "give JSON, or a file that holds it")
      }
      assert.deepStrictEqual(calls, [])
    })
  )

  it.effect("waits for the end of its own job, prints the result, and fails where the skill did", () =>
    Effect.gen(function* () {
      const other = stopped(JobName.make("research"), "completed", "not this one")
      for (const [outcome, code] of [
        ["completed", 0],
        ["error", 1]
      ] as const) {
        const home = yield* temporaryFolder
        const events = [other, stopped(job_name, outcome, "two files\u001b[2J moved")]
        const calls = yield* fakeChoird(home, { signal: Effect.succeed(begun), events: Effect.succeed(events) })
        const ran = yield* choirctl(home, ["skill", "run", SESSION, "tidy", "--wait"])
        assert.strictEqual(ran.code, code)
        assert.match(ran.out, new RegExp(`^run-tidy ${outcome}: two files.* moved\n$`, "u"))
        assert.notInclude(ran.out, "\u001b")
        assert.deepStrictEqual(calls[1], { name: "events", id: SESSION, input: { from: 12, follow: "true" } })
        const printed = document(yield* choirctl(home, ["skill", "run", SESSION, "tidy", "--wait", "--json"]))
        assert.deepInclude(printed, { job_name, outcome, rev: 12 })
      }
    })
  )

  it.effect("prints the whole result, however long it is, from the event that ended the skill", () =>
    Effect.gen(function* () {
      const output = { flags: Array.from({ length: 2000 }, (_, line) => ({ path: "a.ts", line })) }
      const text = JSON.stringify(output)
      const end: PrintedEvent = {
        ...printedEvent,
        event: {
          v: 1,
          rev: Rev.make(19),
          event_type: "SkillTransitionCommitted",
          lane: coreLane(job_name),
          payload: { skill: "tidy", from: "do", to: "done", step: 2, on: "done", ended: "completed", output },
          created_at: "2026-01-02T03:04:05.678Z"
        }
      }
      const home = yield* temporaryFolder
      const events = [end, stopped(job_name, "completed", text.slice(0, 4000))]
      yield* fakeChoird(home, { signal: Effect.succeed(begun), events: Effect.succeed(events) })
      const ran = yield* choirctl(home, ["skill", "run", SESSION, "tidy", "--wait"])
      assert.strictEqual(ran.out, `run-tidy completed: ${text}\n`)
      const printed = document(yield* choirctl(home, ["skill", "run", SESSION, "tidy", "--wait", "--json"]))
      assert.deepInclude(printed, { result: output })
    })
  )

  it.effect("says why a skill did not start, and that an agent has not answered yet", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { signal: Effect.succeed({ ...begun, refused: "there is no skill tidy" }) })
      const refused = yield* choirctl(home, ["skill", "run", SESSION, "tidy", "--wait"])
      assert.deepInclude(refused, { code: 1, out: "not started: there is no skill tidy\n" })

      const slow = yield* temporaryFolder
      yield* fakeChoird(slow)
      const later = yield* choirctl(slow, ["skill", "run", SESSION, "tidy", "--wait"])
      assert.deepInclude(later, { code: 75, out: "the agent has not answered yet\n" })
    })
  )
})

describe("choirctl skill cancel", () => {
  it.effect("orders the end of a skill by its name", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["skill", "cancel", SESSION, "tidy"])
      assert.deepStrictEqual(ran, { code: 0, out: "the skill is being cancelled (signal 5)\n", err: "" })
      assert.deepStrictEqual(asked(calls), [{ name: "cancelSkill", id: SESSION, input: { skill: "tidy" } }])
      assert.strictEqual((yield* choirctl(home, ["skill", "cancel", SESSION, "No"])).code, 2)
    })
  )
})
