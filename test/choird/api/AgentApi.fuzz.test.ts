import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Heartbeat } from "#schema/AgentApi.ts"
import type { EventDraft } from "#schema/Event.ts"
import { coreLane, EDGE, JobName, type LaneId } from "#schema/Ids.ts"
import { AgentType } from "#schema/JobProfile.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { fuzz } from "../../fuzz/fuzz.ts"
import { withOdd } from "../../fuzz/oddValues.ts"
import { mutate, pick, randomOf } from "../../fuzz/requests.ts"
import { BODIES, openSession, VERBS } from "../../support/agentSocket.ts"
import { SESSION } from "../../support/control.ts"
import { database } from "../../support/choird.ts"
import { started, stopped } from "../../support/jobEvents.ts"
import { modelOutput, newTalk, reply, stores, userMsg } from "../../support/stores.ts"
import { ask } from "../../support/unixHttp.ts"
import { SIZE } from "../../support/size.ts"

const REQUESTS = SIZE.fuzzRequests
const KNOWN_REQUESTS = 1000
const SEED = 7
const HISTORIES = 400
const BATCH = 100

const decodeHeartbeat = Schema.decodeUnknownOption(Heartbeat, { onExcessProperty: "error" })

const moves = (lane: LaneId, from: string, to: string, step: number): EventDraft => ({
  event_type: "SkillTransitionCommitted",
  lane,
  payload: { skill: "tidy", from, to, on: "go", step, ...(to === "" ? { ended: "completed", confidence: 0.5 } : {}) }
})

const JOB = coreLane(JobName.make("tests"))
const created_at = "2026-01-01T00:00:00.000Z"
const NOTHING = { tool_calls: 0, files_read: 0, files_changed: 0, commands: 0 }

/** A turn with a skill and a job, whose events have many kinds of columns. */
const HISTORY = [
  userMsg(1),
  moves(EDGE, "", "look", 0),
  modelOutput("c-3"),
  started("tests", { start: { agent_type: AgentType.make("tester"), branch: "b", worktree: "w" } }),
  moves(JOB, "", "look", 0),
  { ...modelOutput("c-6"), lane: JOB },
  moves(JOB, "look", "", 1),
  stopped("tests", { work: { ...NOTHING, steps: 1, tokens: 12, started_at: created_at, earlier_ms: 1 } }),
  moves(EDGE, "look", "", 1),
  modelOutput("c-10"),
  reply(1)
].map((draft) => ({ ...draft, created_at }))

describe("the agents' API under mutated requests (R27)", () => {
  it.live(
    `changes no row for ${REQUESTS} without a token, on a socket and over TLS, and fails on none (seed ${SEED})`,
    () =>
      Effect.gen(function* () {
        const { asked, changed, statuses, tables } = yield* fuzz({ requests: REQUESTS, seed: SEED })
        assert.isAbove(tables, 5)
        assert.deepStrictEqual([changed, asked], [[], []])
        assert.isUndefined(statuses["500"])
        assert.isUndefined(statuses["200"])
        assert.isAbove(statuses["401"] ?? 0, REQUESTS / 5)
        assert.isAbove(statuses["421"] ?? 0, 0)
      }).pipe(Effect.provide(database)),
    600_000
  )

  it.effect(
    "answers every mutated body of a caller that may ask with 200, 400, 404 or 409, and never with 500",
    () =>
      Effect.gen(function* () {
        const { path } = yield* openSession
        const random = randomOf(SEED)
        const odd: Array<string> = []
        for (let sent = 0; sent < KNOWN_REQUESTS; sent += 1) {
          if (sent % BATCH === 0) yield* TestClock.adjust("5 seconds")
          const verb = pick(random, VERBS)
          const body = mutate(random, JSON.stringify(BODIES[verb]))
          const headers = {
            authorization: "Bearer lease",
            "x-choir-session-id": SESSION,
            "x-choir-request-id": String(sent)
          }
          const { status } = yield* ask(path, { path: `/rpc/${verb}`, headers, body })
          if (![200, 400, 401, 404, 409].includes(status)) odd.push(`${status} ${verb} ${body}`)
        }
        assert.deepStrictEqual(odd, [])
      }),
    600_000
  )

  it.effect(
    "stores or refuses each history with a time, number or text that no column can hold, and fails on none",
    () =>
      Effect.gen(function* () {
        const { append } = yield* EventStore
        const random = randomOf(SEED)
        const stored: Array<boolean> = []
        for (let sent = 0; sent < HISTORIES; sent += 1) {
          const at = sent % (HISTORY.length + 1)
          const drafts = HISTORY.map((draft, index) =>
            index === at ? (withOdd(random, draft as unknown as Schema.Json) as unknown as EventDraft) : draft
          )
          const talk = yield* newTalk
          const body = Option.flatMap(Option.liftThrowable(() => talk.commit(...drafts).heartbeat(0))(), (heartbeat) =>
            decodeHeartbeat(JSON.parse(JSON.stringify(heartbeat)))
          )
          const reply = Option.isNone(body) ? undefined : yield* Effect.exit(append(talk.caller, body.value))
          if (reply?._tag === "Failure") assert.fail(`${JSON.stringify(drafts[at])}\n${String(reply.cause)}`)
          stored.push(reply?._tag === "Success" && reply.value.action === "OK")
        }
        // The whole history is stored as it is, and most changes of it are refused.
        assert.isTrue(stored[HISTORY.length])
        assert.isAbove(stored.filter(Boolean).length, HISTORIES / 4)
        assert.isBelow(stored.filter(Boolean).length, (HISTORIES * 3) / 4)
      }).pipe(Effect.provide(Layer.provide(stores, database)))
  )
})
