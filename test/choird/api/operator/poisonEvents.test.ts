/** Events that the database never takes: `status` names them, with the agent that sends them. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { AgentSummaries } from "#src/choird/api/operator/AgentSummaries.ts"
import { makeStatus } from "#src/choird/api/operator/systemStatus.ts"
import { beginLife, database, LIVE, makeAgentHome } from "../../../support/choird.ts"
import { refuseEvent } from "../../../support/refusedEvent.ts"
import { LAYER_MS_MAX } from "../../../support/size.ts"

const setUp = Effect.gen(function* () {
  const home = yield* makeAgentHome()
  const life = yield* beginLife(home.home)
  const status = yield* life.within(makeStatus("1.0.0").pipe(Effect.provide(AgentSummaries.layer)))
  const warnings = Effect.map(life.within(status), ({ warnings }) => warnings.join("\n"))
  return { ...home, ...life, warnings }
})

describe("an event that the database does not take", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("is named in status where it is to blame, and the agent ends", () =>
      Effect.gen(function* () {
        const { agent_id, lifecycle, say, views, warnings } = yield* setUp
        const { session_id } = yield* lifecycle.start(agent_id, {})
        const allow = yield* refuseEvent(session_id ?? "", 2, "22P05", "character has no equivalent")
        yield* say(agent_id, "hello")
        yield* views.first((view) => view.status === "crashed")
        yield* allow
        assert.match(
          yield* warnings,
          new RegExp(
            `^the agent ${agent_id} crashed: its session is frozen: the database refuses the events 1 to 3: .*character has no equivalent`,
            "mu"
          )
        )
      })
    )

    it.effect("is named in status where the database is to blame, for as long as it is", () =>
      Effect.gen(function* () {
        const { agent_id, lifecycle, say, told, warnings } = yield* setUp
        const { session_id } = yield* lifecycle.start(agent_id, {})
        const allow = yield* refuseEvent(session_id ?? "", 2, "42703", "a column is missing")
        yield* say(agent_id, "hello")
        const words = `the database does not take the events of ${agent_id}, which keeps them and tries again: `
        const named = yield* Effect.repeat(warnings, {
          until: (text) => text.includes(words),
          schedule: Schedule.spaced("20 millis")
        })
        assert.match(named, /a column is missing/u)
        yield* allow
        yield* told(agent_id, /: hello$/u)
        assert.notInclude(yield* warnings, words)
      })
    )
  })
})
