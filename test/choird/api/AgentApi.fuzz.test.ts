import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { fuzz } from "../../fuzz/fuzz.ts"
import { mutate, pick, randomOf } from "../../fuzz/requests.ts"
import { BODIES, openSession, VERBS } from "../../support/agentSocket.ts"
import { SESSION } from "../../support/control.ts"
import { database } from "../../support/choird.ts"
import { ask } from "../../support/unixHttp.ts"
import { SIZE } from "../../support/size.ts"

const REQUESTS = SIZE.fuzzRequests
const KNOWN_REQUESTS = 1000
const SEED = 7
const BATCH = 100

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
})
