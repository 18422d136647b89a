import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { CallId, JobName } from "#schema/Ids.ts"
import { jobToken } from "#src/shared/wire/jobToken.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { BODIES, type openSession, type Verb, VERBS } from "../../support/agentSocket.ts"
import { OTHER_SESSION } from "../../support/control.ts"
import { describeTransports } from "../../support/everyTransport.ts"

type Options = Parameters<Effect.Success<typeof openSession>["call"]>[1]

describeTransports("a core job's word (R21, D35)", ({ openSession }) => {
  const job_id = CallId.make("c-7-0")
  const told = (token: string, running: boolean) =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const cores = new Map(running ? [[JobName.make("work"), { job_id } as CoreLane]] : [])
      world.state = { ...world.state, cores }
      return (yield* call("REPORT_STATUS", { headers: { "x-choir-job": token } })).status
    })

  it.effect(
    "counts while the job runs, however the clock is set, and is 401 after its stop or with another lease",
    () =>
      Effect.gen(function* () {
        const valid = jobToken("lease", job_id)
        assert.strictEqual(yield* told(valid, true), 200)
        assert.strictEqual(yield* told(valid, false), 401)
        assert.strictEqual(yield* told(jobToken("another lease", job_id), true), 401)
        assert.strictEqual(yield* told(jobToken("lease", CallId.make("c-8-0")), true), 401)
        assert.strictEqual(yield* told("nonsense", true), 401)
        for (const time of ["2100-01-01", "1971-01-01"]) {
          yield* TestClock.setTime(Date.parse(time))
          assert.strictEqual(yield* told(valid, true), 200)
        }
      })
  )
})

describeTransports("who may ask (R29)", ({ openSession, transport }) => {
  const turnedAway = (verb: Verb, options: Options) =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      assert.strictEqual((yield* call(verb, options)).status, 429)
      assert.deepStrictEqual(world.effects, [])
    })

  const refused = (verb: Verb, why: string, options: Options) =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const answer = yield* call(verb, options)
      assert.strictEqual(answer.status, 401)
      assert.deepStrictEqual(JSON.parse(answer.text), {
        error: { type: "AUTH", message: "no valid token for this session" }
      })
      assert.deepStrictEqual(world.effects, [])
      assert.lengthOf(world.audit, 1)
      assert.strictEqual(world.audit[0]?.action, `rpc.${verb}`)
      assert.include(JSON.stringify(world.audit[0]?.detail), why)
    })

  for (const verb of VERBS) {
    it.effect(`refuses ${verb} with an unknown token, whatever the body`, () =>
      refused(verb, "unknown token", { token: "nobody", body: "{" })
    )
    it.effect(`refuses ${verb} with a token of another session`, () => {
      const options = { token: "stranger", headers: { "x-choir-session-id": OTHER_SESSION } }
      // A socket belongs to one session. Over TCP the token says which, and a session that is not open yet is waited for.
      return transport === "https" ? turnedAway(verb, options) : refused(verb, "another session", options)
    })
    it.effect(`refuses ${verb} when another session is named`, () =>
      refused(verb, "is named", { token: "lease", headers: { "x-choir-session-id": OTHER_SESSION } })
    )
    if (verb !== "INIT_HELLO")
      it.effect(`refuses ${verb} with the bootstrap token (D12)`, () => refused(verb, "bootstrap", { token: "boot" }))
    if (verb !== "HEARTBEAT")
      it.effect(`refuses ${verb} with a token of an older epoch (E13)`, () =>
        refused(verb, "epoch", { token: "older" })
      )
  }
  for (const verb of VERBS)
    it.effect(`refuses ${verb} from the moment that its lease is revoked`, () =>
      Effect.gen(function* () {
        const { call, world } = yield* openSession
        yield* call("REPORT_STATUS")
        world.tokens.delete("lease")
        const asked = world.effects.length
        assert.strictEqual((yield* call(verb, { token: "lease" })).status, 401)
        assert.lengthOf(world.effects, asked)
      })
    )
  it.effect("refuses INIT_HELLO for another agent", () =>
    refused("INIT_HELLO", "another agent", { body: { ...BODIES.INIT_HELLO, agent_id: "bob" } })
  )
  it.effect("refuses INIT_HELLO for another session", () =>
    refused("INIT_HELLO", "another agent or session", { body: { ...BODIES.INIT_HELLO, session_id: OTHER_SESSION } })
  )
  it.effect("refuses the tail to the bootstrap token", () =>
    refused("INIT_HELLO", "tail", { body: { ...BODIES.INIT_HELLO, tail_from: 1 } })
  )

  it.effect("fences an older epoch's heartbeat, which is not a sign of life (D4)", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const answer = yield* call("HEARTBEAT", { token: "older" })
      assert.deepStrictEqual(JSON.parse(answer.text), { ack_rev: 0, action: "FENCED", config_version_latest: 1 })
      assert.deepStrictEqual(world.effects, [])
    })
  )
})
