/** A transcript that is continued from the one before reads as one that is told from its beginning. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { transcriptOf } from "#src/agent/model/prompt/transcript.ts"
import { fold, initialState } from "#src/shared/session/fold.ts"
import { EVERY_TOOL } from "../../../support/offered.ts"
import { makeHistory, makeRandom } from "../../../support/history.ts"

const SEEDS = Array.from({ length: 6 }, (_, seed) => seed + 1)
const EVENTS = 100

const NOTES = [
  { about: "environment", text: "Your environment has changed:\nb" },
  { about: "turn 3", text: "Still to be answered, the user's message:\nhi" },
  { about: "report 4", text: "Report:\n{}" },
  { about: "skill", text: "a step" }
]

/** The same history with what each output's call was shown: at a moment before it, which may be before other events. */
const prompted = (events: ReadonlyArray<ChoirEvent>, seed: number): ReadonlyArray<ChoirEvent> => {
  const random = makeRandom(seed)
  return events.map((event) => {
    if (event.event_type !== "ModelOutput" || random() < 0.2) return event
    const notes = NOTES.filter(() => random() < 0.25)
    const rev = Math.max(0, event.rev - 1 - Math.floor(random() * 4))
    const prompt = notes.length === 0 ? { rev } : { rev, notes }
    return { ...event, payload: { ...event.payload, prompt } }
  })
}

const windowsOf = ({ cores, edge }: SessionState) => [
  { lane: "edge" as const, window: edge.window },
  ...[...cores.values()].map(({ window }) => ({ lane: "core" as const, window }))
]

describe("transcriptOf", () => {
  it.each(SEEDS)("reads the same continued after each event as told at once (seed %i)", (seed) => {
    const events = prompted(makeHistory(seed, EVENTS).events, seed)
    const find = (rev: number) => events[rev - 1]
    const isMasked = (name: string) => name === "out-send"
    let state = initialState
    for (const event of events) {
      const folded = fold(state, event)
      if (Result.isFailure(folded)) throw new Error(folded.failure.reason)
      state = folded.success
      for (const { lane, window } of windowsOf(state)) {
        const { asked_rev, endsAsked, messages, told } = transcriptOf(lane, window, {
          find,
          isMasked,
          offered: EVERY_TOOL
        })
        // With another way to find events nothing is known from before.
        const whole = transcriptOf(lane, [...window], {
          find: (rev) => find(rev),
          isMasked,
          offered: EVERY_TOOL
        })
        assert.deepStrictEqual(
          { asked_rev, endsAsked, messages, told: [...told] },
          {
            asked_rev: whole.asked_rev,
            endsAsked: whole.endsAsked,
            messages: whole.messages,
            told: [...whole.told]
          }
        )
      }
    }
  })
})
