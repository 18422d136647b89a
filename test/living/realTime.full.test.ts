/** What a moved clock cannot show, in real time: a provider that says nothing, one that is down for minutes, and a reminder that is waited for (R94). */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { noOutsideNetwork } from "../support/outside/outsideNetwork.ts"
import { whyNoOtherUser } from "../support/ordinaryUser.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { PAGES } from "./days.ts"
import { HABITS } from "./habits.ts"
import { firstStart, moveIn, pairPhone, PEOPLE } from "./Home.ts"
import { modelOf } from "./Model.ts"
import { sendsFile, whenItGoesDown, whileItHangs, writes } from "./steps.ts"

const SUITE = "an evening in real time in a default home"
const EVENING_MS_MAX = 1_500_000
/** The first word of a provider is waited for this long (`FIRST_BYTE_MS_MAX`). */
const FIRST_WORD_MS = 90_000
/** How long the provider is down while a job runs. */
const DOWN_MS = 300_000
const leftOut = noOutsideNetwork(SUITE) ?? whyNoOtherUser(SUITE) ?? ensureDebianPackages(["bubblewrap"], SUITE)

const evening = Effect.gen(function* () {
  const home = yield* moveIn({
    pages: PAGES,
    model: (request) => modelOf(HABITS, () => Effect.void)(request),
    set: () => undefined
  })
  yield* firstStart(home)
  yield* pairPhone(home)
  const { bot } = home
  /** The next message to Ada in which something stands. */
  const said = Effect.fnUntraced(function* (words: RegExp) {
    const read = (yield* bot.sent.all).length
    return bot.sent.first(({ chat, text }) => chat.id === PEOPLE.Ada && words.test(text ?? ""), read)
  })
  yield* bot.sent.first(({ text }) => text?.includes("You are in") === true)

  const honest = yield* said(/does not answer|could not answer/u)
  const asked_ms = yield* Clock.currentTimeMillis
  yield* whileItHangs(writes("Ada", "18:00", "good evening", "")).act(home)
  const { text: sentence = "" } = yield* honest
  const waited_ms = (yield* Clock.currentTimeMillis) - asked_ms
  assert.isAtLeast(waited_ms, FIRST_WORD_MS - 5000, sentence)
  // A turn asks once more before it says that it could not answer.
  assert.isAtMost(waited_ms, 2 * FIRST_WORD_MS + 30_000, sentence)
  yield* home.ail(() => undefined)
  const answered = yield* said(/^(?:Good evening|Good morning)\.$/u)
  yield* bot.text(PEOPLE.Ada, "good morning")
  yield* answered

  const known = yield* said(/packing list/u)
  yield* sendsFile("18:10", "packing.txt", "tent\nstove\nmap of the lakes\n", "").act(home)
  yield* known
  const waits = yield* said(/waits for the provider since/u)
  const done = yield* said(/six words/u)
  const count = "Count the words of the packing list in the background, please"
  yield* whenItGoesDown(writes("Ada", "18:20", count, "")).act(home)
  yield* Effect.sleep(DOWN_MS)
  yield* waits
  yield* home.repair
  yield* done

  const due = yield* said(/^◆ Reminder 1: stretch$/u)
  const set_ms = yield* Clock.currentTimeMillis
  yield* bot.text(PEOPLE.Ada, "/remind in 2 minutes stretch")
  yield* due
  const late_ms = (yield* Clock.currentTimeMillis) - set_ms - 120_000
  assert.isAtLeast(late_ms, 0)
  assert.isAtMost(late_ms, 30_000)
})

describe.skipIf(leftOut !== undefined)(SUITE, () => {
  it.live(
    "tells of a provider that is silent twice, loses no job to one that is down, and reminds on time",
    () => Effect.scoped(evening),
    EVENING_MS_MAX
  )
})
