import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fileOf } from "#src/choird/telegram/telegramFiles.ts"
import { topicsOf } from "#src/choird/telegram/topicCalls.ts"

const FAMILY = "👩‍👩‍👧"
/** A name in which the last place that is allowed is within one character. */
const nameOf = (units: number) => `${"a".repeat(units - 3)}${FAMILY} and more`

/** The names that Telegram is given. */
const named = () => {
  const names: Array<string> = []
  const never = () => Promise.reject(new Error("nobody asks for that"))
  const topics = topicsOf(
    {
      getMe: never,
      getChat: never,
      closeForumTopic: never,
      createForumTopic: (_, name) => {
        names.push(name)
        return Promise.resolve({ message_thread_id: 7 })
      },
      editForumTopic: (_, __, { name }: { readonly name?: string }) => {
        names.push(name ?? "")
        return Promise.resolve(true)
      }
    },
    (_, __, run) => Effect.promise(() => run(AbortSignal.timeout(60_000)))
  )
  return { names, topics }
}

describe("a text that Telegram allows so many characters of", () => {
  it.effect("is cut between characters where it is a topic's name", () =>
    Effect.gen(function* () {
      const { names, topics } = named()
      assert.strictEqual(yield* topics.createTopic("-1", nameOf(128)), 7)
      yield* topics.closeTopic("1", 7, nameOf(126))
      assert.deepStrictEqual(names, ["a".repeat(125), `✓ ${"a".repeat(123)}`])
    })
  )

  it("is cut between characters where it is the name of a file", () => {
    const read = (file_name: string) => fileOf({ document: { file_id: "f", file_name } })?.name
    assert.strictEqual(read(nameOf(1024)), "a".repeat(1021))
    assert.strictEqual(read(`${FAMILY}.pdf`), `${FAMILY}.pdf`)
  })
})
