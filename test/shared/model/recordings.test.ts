/** Answers in the shapes of thirty-odd servers (`test/corpus/providers`), whole and streamed, each read as its provider meant it. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ModelError } from "#schema/Event.ts"
import { type Answer } from "#src/shared/model/Answer.ts"
import { makeVisibleText } from "#src/agent/model/visibleText.ts"
import { chatRecording } from "../../support/recordings/chatRecording.ts"
import { argumentsOf, type Meaning, MEANINGS, WORDS } from "../../support/recordings/Meaning.ts"
import { messagesRecording } from "../../support/recordings/messagesRecording.ts"
import { responsesRecording } from "../../support/recordings/responsesRecording.ts"
import { canSay, readServers, type Recording, type Server } from "../../support/recordings/Server.ts"
import { streamOf, wholeOf } from "../../support/askedCodec.ts"

const SERVERS = readServers()

const recorded = (server: Server, meaning: Meaning): Recording => {
  switch (server.api) {
    case "chat":
      return chatRecording(server, meaning)
    case "messages":
      return messagesRecording(server, meaning)
    case "responses":
      return responsesRecording(server, meaning)
  }
}

/** Pieces of a stream as a network cuts it, in characters; 0 is all of it at once. */
const CUTS = [7, 0]

const callsOf = (meaning: Meaning) =>
  (meaning.calls ?? []).map(({ input, name }, index) => {
    const isCut = meaning.cut_call !== undefined && index === (meaning.calls ?? []).length - 1
    return { name, input: isCut ? argumentsOf(meaning, index) : input }
  })

const FINISH = { stop: "stop", calls: "tool_calls", length: "length", filter: "error" } as const

/** The error that a meaning is, if it is one. */
const failureOf = (server: Server, { end, fails, refusal }: Meaning): RegExp | undefined => {
  if (fails === "cut") return /broke off/u
  if (fails === "error") return new RegExp(WORDS, "u")
  if (refusal !== undefined) return /the model refused: I cannot help with that\./u
  if (end !== "filter") return undefined
  return server.api === "messages" ? /the model refused/u : /content filter/u
}

const countedOf = (server: Server, { usage }: Meaning) => {
  const { cached, input, output, thought } = usage
  const isPlain = server.api === "chat" && server.counts === "plain"
  const isThought =
    server.api === "responses" || (server.api === "chat" && /openai|openrouter|deepseek/u.test(server.counts))
  return { input, output, cache_read: isPlain ? 0 : cached, reasoning: isThought ? thought : 0 }
}

const check = (server: Server, meaning: Meaning, read: Result.Result<Answer, ModelError>) => {
  const failure = failureOf(server, meaning)
  if (failure !== undefined) {
    assert.isTrue(Result.isFailure(read), "it is a failure")
    if (Result.isFailure(read)) {
      assert.match(read.failure.message, failure)
      assert.isBelow(read.failure.message.length, 400)
    }
    return
  }
  const { content, finish_reason, tool_calls, usage } = Result.getOrThrow(read)
  assert.strictEqual(content, meaning.text ?? "")
  assert.deepStrictEqual<unknown>(tool_calls, callsOf(meaning))
  assert.strictEqual(finish_reason, FINISH[meaning.end])
  if (server.api === "chat" && server.usage === "none") {
    assert.isUndefined(usage)
    return
  }
  const { cache_read, input, output, reasoning } = usage ?? {}
  assert.deepStrictEqual<unknown>({ input, output, cache_read, reasoning }, countedOf(server, meaning))
}

interface Played {
  readonly title: string
  readonly server: Server
  readonly meaning: Meaning
  readonly read: () => Result.Result<Answer, ModelError>
}

/** Nothing in a recording is a secret. */
const NO_SECRETS = { scrub: <A>(text: A) => text, begun: () => 0 }

/** What a person is shown while an answer comes: in the end, and all of it, with what is taken back as thoughts. */
const shownOf = (heard: ReadonlyArray<unknown>) => {
  let shown = ""
  let everShown = ""
  const visible = makeVisibleText(NO_SECRETS, () => (shown = ""))
  for (const step of heard) {
    const { text = "", type } = step as { readonly type: string; readonly text?: string }
    if (type !== "text") continue
    const more = visible(text)
    shown += more
    everShown += more
  }
  return { shown, everShown }
}

/** Where a server's prompt opens the thoughts, nothing in their text says what they are before their end. */
const showsThoughts = (server: Server): boolean => server.api === "chat" && server.reasoning === "open think tag"

/** What is shown of a stream is the answer, and no thought. */
const streamed = (server: Server, meaning: Meaning, text: string, chars: number) => {
  const { answer, heard } = streamOf(server.api, text, chars === 0 ? Math.max(1, text.length) : chars)
  const { everShown, shown } = shownOf(heard)
  if (meaning.fails === undefined && Result.isSuccess(answer))
    assert.strictEqual(shown.trim(), (meaning.text ?? "").trim())
  assert.notInclude(showsThoughts(server) ? shown : everShown, "SECRET")
  return answer
}

const played = (server: Server): ReadonlyArray<Played> =>
  MEANINGS.filter((meaning) => canSay(server, meaning)).flatMap((meaning): ReadonlyArray<Played> => {
    const { blocks, whole } = recorded(server, meaning)
    const of = { server, meaning }
    const text = blocks.join("")
    return [
      ...(whole === undefined
        ? []
        : [{ ...of, title: `${meaning.name}, whole`, read: () => wholeOf(server.api, whole) }]),
      ...CUTS.map((chars) => ({
        ...of,
        title: `${meaning.name}, streamed in pieces of ${chars === 0 ? "any size" : chars}`,
        read: () => streamed(server, meaning, text, chars)
      }))
    ]
  })

const ALL = SERVERS.map((server) => [server, played(server)] as const)

describe("recordings", () => {
  it("are of twenty providers and more, in all three APIs, and of more than 1,300 answers", () => {
    assert.isAtLeast(SERVERS.length, 30)
    assert.deepStrictEqual([...new Set(SERVERS.map(({ api }) => api))].toSorted(), ["chat", "messages", "responses"])
    assert.isAtLeast(
      ALL.reduce((sum, [, answers]) => sum + answers.length, 0),
      1300
    )
  })

  for (const [server, answers] of ALL)
    describe(`of ${server.name}`, () => {
      it.each(answers.map((one) => [one.title, one] as const))("are read as they are meant: %s", (_, one) => {
        check(one.server, one.meaning, one.read())
      })
    })
})
