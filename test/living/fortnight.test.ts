/** A fortnight of ordinary life in a default home: after each step the phones show what a person has read and found right (R94). */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { noOutsideNetwork } from "../support/outside/outsideNetwork.ts"
import { whyNoOtherUser } from "../support/ordinaryUser.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { settableClock } from "../support/settableClock.ts"
import { cardsOf, recalledOf, unaskedOf } from "./bars.ts"
import { DAYS, IDLE_DATES, PAGES } from "./days.ts"
import { makeDiary } from "./Diary.ts"
import { FACTS } from "./facts.ts"
import { HABITS, saidBefore } from "./habits.ts"
import { type HomePlan, HOSTS, moveIn } from "./Home.ts"
import { modelOf } from "./Model.ts"
import { passes } from "./steps.ts"

const SUITE = "a fortnight in a default home"
const FORTNIGHT_MS_MAX = 1_200_000
/** Cards that harmless work may ask for on a day. */
const CARDS_PER_DAY_MAX = 2
/** What people asked to be read to them. */
const PAGES_NAMED = Object.keys(PAGES).map((path) => `GET ${path}`)
/** What Ada writes when she is back, before which text from outside whose time is over leaves the window. */
const BACK = /good morning$|^<choir-note>\nCompaction:/u
const leftOut = noOutsideNetwork(SUITE) ?? whyNoOtherUser(SUITE) ?? ensureDebianPackages(["bubblewrap"], SUITE)

/** A job waits until the person has read that it began. */
const model: HomePlan["model"] = (request, bot) =>
  modelOf(HABITS, (seen) => {
    const said = saidBefore(seen)
    return said === undefined ? Effect.void : bot.sent.first(({ text }) => text === said)
  })(request)

const fortnight = Effect.gen(function* () {
  const { clock, set } = yield* settableClock
  const lived = Effect.gen(function* () {
    const home = yield* moveIn({ pages: PAGES, model, set })
    const live = makeDiary(home)
    const days = yield* Effect.forEach(DAYS.slice(0, -1), live)
    const busy = (yield* home.provider.requests.all).length
    const idle = Effect.map(home.provider.requests.all, (all) => all.slice(busy))
    for (const date of IDLE_DATES) yield* passes(home, date)
    assert.lengthOf(yield* idle, 0, "requests to the model in days without messages")
    for (const day of DAYS.slice(-1)) yield* live(day)
    assert.deepStrictEqual(unaskedOf(yield* idle, BACK), [], "requests to the model that no message asked for")
    const { asked, known } = recalledOf(days)
    assert.deepStrictEqual(known, asked, "facts that were asked for and known")
    assert.lengthOf(known, FACTS.length)
    for (const [index, cards] of cardsOf(days).entries())
      assert.isAtMost(cards, CARDS_PER_DAY_MAX, `cards on ${DAYS[index]?.name}`)
    const { asked: names, trapped } = yield* home.network.seen
    assert.deepStrictEqual(trapped, [], "connections to places that nobody named")
    assert.includeMembers([...HOSTS], [...names])
    assert.includeMembers(PAGES_NAMED, home.asked, "pages that nobody named")
  })
  yield* Effect.provideService(lived, Clock.Clock, clock)
})

describe.skipIf(leftOut !== undefined)(SUITE, () => {
  it.live("shows on the phones what a person has read", () => Effect.scoped(fortnight), FORTNIGHT_MS_MAX)
})
