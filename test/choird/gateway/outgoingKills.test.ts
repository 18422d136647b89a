/** choird dies at each step of a delivery: while it copies a file, sends a part, hears that Telegram took it, or notes that (R43). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { arrivedFiles, cutOff, leave, setUpOutgoing, withFiles } from "../../support/outgoingWorld.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const start = Effect.forkChild({ startImmediately: true })

const TEXT = ["a", "b", "c"].map((letter) => letter.repeat(4000)).join("\n\n")
const VOICE = `OggS${"\0".repeat(24)}OpusHead`
/** Calls that the messages below need at least: three parts, an album, a voice note and a text. */
const CALLS_MIN = 6
/** Turns of the process in which the files are copied. */
const TURNS = 8

type World = Effect.Success<typeof setUpOutgoing>

const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

const eventually = <E>(holds: Effect.Effect<boolean, E>) =>
  Effect.gen(function* () {
    while (!(yield* holds)) {
      yield* TestClock.adjust("80 millis")
      for (let turns = 0; turns < 4; turns += 1) yield* turn
    }
  })

/** A text in three parts, an album with a caption, a file of another kind and a short text. */
const setUp = Effect.gen(function* () {
  const world = yield* setUpOutgoing
  const file = (name: string) => leave(world.workspace, name, Buffer.from(`bytes of ${name}`))
  yield* world.put(TEXT)
  yield* world.put("two files", withFiles(file("a.txt"), file("b.txt")))
  yield* world.put("", withFiles(leave(world.workspace, "c.ogg", Buffer.from(VOICE))))
  yield* world.put("the end")
  return world
})

const endedRows = ({ outcomes }: World) =>
  Effect.map(outcomes.all, (all) => new Set(all.filter((outcome) => !outcome.startsWith("failed"))))

/** What the chat shows, message by message. */
const shown = (world: World) =>
  Effect.gen(function* () {
    const files = yield* arrivedFiles(world.bot)
    return (yield* world.bot.sent.all).map(
      (message) => files.find((one) => one.message === message)?.bytes.toString() ?? message.text?.[0] ?? ""
    )
  })

/** Lets choird die when `dies` holds, unless all is delivered before, and the next one finish. */
const killed = Effect.fnUntraced(function* (world: World, dies: Effect.Effect<boolean>) {
  const first = yield* start(world.run)
  const isDone = Effect.map(endedRows(world), ({ size }) => size === 4)
  yield* eventually(Effect.map(Effect.all([dies, isDone]), ([one, other]) => one || other))
  const isCut = yield* dies
  yield* cutOff(first)
  yield* world.bot.heal
  const second = yield* start(world.run)
  yield* eventually(isDone)
  yield* cutOff(second)
  assert.deepStrictEqual(
    [...(yield* endedRows(world))].toSorted(),
    [1, 2, 3, 4].map((id) => `delivered ${id}`)
  )
  return { isCut, sent: yield* shown(world) }
})

const WHOLE = ["a", "b", "c", "bytes of a.txt", "bytes of b.txt", VOICE, "t"]

/** The most that one crash may double: a message, or an album, which is one call. */
const DOUBLED_MAX = 2

/** Everything is there in order, and at most the call that the crash cut off is there twice. */
const assertOnce = (sent: ReadonlyArray<string>, about: string) => {
  assert.isAtMost(sent.length, WHOLE.length + DOUBLED_MAX, about)
  const firsts = sent.filter((text, at) => sent.indexOf(text) === at)
  assert.sameMembers([...firsts], WHOLE, about)
  const doubled = sent.filter((text, at) => sent.indexOf(text) !== at)
  const isAlbum = doubled.join() === "bytes of a.txt,bytes of b.txt"
  assert.isTrue(doubled.length <= 1 || isAlbum, `${about}: ${doubled.join()}`)
}

describe("a delivery that a death of choird cut off", () => {
  for (const [what, strike] of [
    ["before Telegram took it", fault.silence],
    ["after Telegram took it and before that was noted", fault.silenceAfterAccept]
  ] as const)
    it.effect(`${what}, at each call, loses nothing and doubles at most that call`, () =>
      Effect.gen(function* () {
        for (let step = 0, isStruck = true; isStruck; step += 1) {
          const world = yield* setUp
          yield* world.bot.failAfter("*", strike, step)
          const calls = Effect.map(world.bot.calls.all, (all) => all.filter(({ method }) => method !== "getUpdates"))
          const dies = Effect.map(calls, ({ length }) => length > step)
          const { isCut, sent } = yield* killed(world, dies)
          assertOnce(sent, `step ${step}`)
          isStruck = isCut
          assert.isTrue(isStruck || step > CALLS_MIN, `step ${step}`)
        }
      })
    )

  it.effect("while its files are copied is whole all the same", () =>
    Effect.gen(function* () {
      for (let turns = 0; turns < TURNS; turns += 1) {
        const world = yield* setUp
        const first = yield* start(world.run)
        for (let count = 0; count < turns; count += 1) yield* turn
        yield* cutOff(first)
        assertOnce((yield* killed(world, Effect.succeed(false))).sent, `turn ${turns}`)
        assert.deepStrictEqual(world.copies(), [])
      }
    })
  )
})
