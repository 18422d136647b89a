/** No answer of a provider ends a lane: after a cut call, an empty reply and a refused request the next message is answered. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { agentWithModels, configWith } from "../support/modelClient.ts"
import * as double from "../support/testing/Provider.ts"
import { ofType, quiet, spoken, testTool } from "../support/testing/TestAgent.ts"

const write = testTool("mem.write", () => Effect.succeed({ status: "success", summary: "written" }))

const cut = { finish_reason: "length" }
const ended = (message: object, finish_reason: string): double.Reply =>
  double.raw(
    JSON.stringify({
      choices: [{ message, finish_reason }],
      usage: { prompt_tokens: 10, completion_tokens: 900, total_tokens: 910 }
    })
  )
const cutCall = ended(
  { content: null, tool_calls: [{ function: { name: "mem-write", arguments: '{"content":"the first half' } }] },
  cut.finish_reason
)
const cutText = (content: string) => ended({ content }, cut.finish_reason)
const empty = ended({ content: "" }, "stop")
const refusedByModel = ended({ content: null, refusal: "I cannot help with that." }, "stop")
const spawn = double.callTools([{ name: "choir-core-spawn", input: { job_name: "work", task_spec: "do it" } }])

/** An agent with its real client of models, a provider with these replies, and what the user and the log saw. */
const talking = Effect.fnUntraced(function* (
  replies: ReadonlyArray<double.Reply>,
  options: double.ProviderOptions = {}
) {
  const provider = yield* double.makeProviderOf(options)
  yield* provider.script(...replies)
  const plane = yield* agentWithModels({ tools: [write], config: configWith({ endpoint: provider.endpoint }) })
  const say = Effect.fnUntraced(function* (text: string) {
    const before = spoken(plane.events).length
    yield* plane.say(text)
    yield* plane.until((events, state) => spoken(events).length > before && quiet(state))
    return spoken(plane.events)
      .slice(before)
      .map(({ payload }) => payload.text)
  })
  return { plane, provider, say }
})

/** The messages of a request as they went over the wire. */
const sent = (provider: double.Provider, index: number) =>
  Effect.map(provider.requests.all, (all) => JSON.stringify(all[index]?.body))

describe("edge", () => {
  it.live("learns that its call was cut, writes again, and answers the next message", () =>
    Effect.gen(function* () {
      const whole = double.callTools([{ name: "mem-write", input: { content: "a half" } }])
      const { plane, provider, say } = yield* talking([
        cutCall,
        whole,
        double.answer("written"),
        double.answer("hello")
      ])
      assert.deepStrictEqual(yield* say("write it"), ["written"])
      const [first, second] = ofType(plane.events, "ToolResultCommitted")
      assert.strictEqual(first?.payload.status, "rejected")
      assert.include(first?.payload.summary, "cut at 900 tokens, inside the arguments of mem-write")
      assert.include(first?.payload.summary, "the first half")
      assert.strictEqual(second?.payload.status, "success")
      const replayed = yield* sent(provider, 1)
      assert.include(replayed, '"arguments":"{}"')
      assert.deepStrictEqual(yield* say("hello"), ["hello"])
    })
  )

  it.live("says that the model's limit is too small where every call is cut", () =>
    Effect.gen(function* () {
      const { say } = yield* talking([...Array.from({ length: 12 }, () => cutCall), double.answer("hello")])
      const [text = ""] = yield* say("write it")
      assert.match(text, /cut at 900 tokens, inside a tool call[^.]*\. Raise the model's max_tokens/u)
    })
  )

  it.live("asks once for a better reply than an empty one, and answers the next message where none comes", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* talking([empty, double.answer("here"), empty, empty, double.answer("hello")])
      assert.deepStrictEqual(yield* say("one"), ["here"])
      assert.include(yield* sent(provider, 1), "Your reply was empty. Continue, or give the result.")
      const [text] = yield* say("two")
      assert.match(text ?? "", /^I could not answer: the model's reply was empty, and so was the one after it/u)
      assert.deepStrictEqual(yield* say("three"), ["hello"])
    })
  )

  it.live("rejects the calls that are too many or too large alone, runs the others, and tells the model", () =>
    Effect.gen(function* () {
      const calls = Array.from({ length: 34 }, (_, index) => ({
        name: "mem-write",
        input: index === 1 ? { content: "a".repeat(70_000) } : { index }
      }))
      const { plane, provider, say } = yield* talking([double.callTools(calls), double.answer("done")])
      assert.deepStrictEqual(yield* say("write them"), ["done"])
      const results = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload.status)
      assert.deepStrictEqual(
        [
          results.filter((status) => status === "success").length,
          results.filter((status) => status === "rejected").length
        ],
        [31, 3]
      )
      const told = yield* sent(provider, 1)
      assert.include(told, "mem-write: its arguments have 70014 bytes, and 65536 are the limit")
      assert.include(told, "mem-write: your answer has more than 32 calls, and only the first 32 were run")
      // A refused call goes back without what nobody ran.
      assert.notInclude(told, "aaaaaaaa")
    })
  )

  it.live("asks once for a structured call where one was written as text, and never shows it", () =>
    Effect.gen(function* () {
      const asText = double.answer('Let me write.\n<tool_call>\n{"name":"mem-write","arguments":{}}\n</tool_call>')
      const { plane, provider, say } = yield* talking([
        asText,
        double.callTools([{ name: "mem-write", input: {} }]),
        double.answer("written"),
        asText,
        asText,
        double.answer("hello")
      ])
      assert.deepStrictEqual(yield* say("write it"), ["written"])
      assert.include(yield* sent(provider, 1), "You wrote a tool call as text, so nothing was run.")
      assert.lengthOf(ofType(plane.events, "ToolResultCommitted"), 1)
      assert.deepStrictEqual(yield* say("again"), [
        "Let me write.\n\n(The answer is incomplete: the model wrote a tool call as text, and again when it was asked not to, so nothing was run: its server may lack the parser for this model's calls.)"
      ])
      assert.deepStrictEqual(yield* say("hello"), ["hello"])
    })
  )

  it.live("makes a call again that the model's own server refused, and gives up after three", () =>
    Effect.gen(function* () {
      const refusal = double.raw(
        JSON.stringify({
          error: {
            message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
            type: "invalid_request_error",
            code: "tool_use_failed",
            failed_generation: '<function=mem-write>{"content":1</function>'
          }
        }),
        400
      )
      const validation = double.raw(
        `data: ${JSON.stringify({ error: { message: "tool call validation failed: parameters for tool mem-write did not match schema", code: 400 } })}\n\n`,
        200,
        "text/event-stream"
      )
      const { plane, provider, say } = yield* talking([
        refusal,
        validation,
        double.callTools([{ name: "mem-write", input: {} }]),
        double.answer("written"),
        refusal,
        refusal,
        refusal,
        double.answer("hello")
      ])
      assert.deepStrictEqual(yield* say("write it"), ["written"])
      assert.include(yield* sent(provider, 1), "Your last tool call was refused by the server and not run")
      assert.include(yield* sent(provider, 2), "did not match schema")
      // What was said to the model about it is not kept.
      assert.notInclude(yield* sent(provider, 3), "was refused by the server")
      assert.lengthOf(ofType(plane.events, "ToolResultCommitted"), 1)
      assert.match((yield* say("again"))[0] ?? "", /^I could not answer: .*Failed to call a function/u)
      assert.deepStrictEqual(yield* say("hello"), ["hello"])
    })
  )

  it.live("does not wait for a quota that is used up, and says where to look", () =>
    Effect.gen(function* () {
      const spent = double.raw(
        JSON.stringify({
          error: {
            message: "You exceeded your current quota, please check your plan and billing details.",
            code: "insufficient_quota"
          }
        }),
        429
      )
      const { provider, say } = yield* talking([spent, double.answer("hello")])
      const [text = ""] = yield* say("one")
      assert.match(
        text,
        /the quota of the model's account at its provider is used up, and waiting does not bring it back/u
      )
      assert.match(text, /Nothing is lost; send a message once that is solved\.$/u)
      assert.lengthOf(yield* provider.requests.all, 1)
      assert.deepStrictEqual(yield* say("two"), ["hello"])
    })
  )

  it.live("joins a text that was cut with its continuation, and says so where that is cut as well", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* talking([
        cutText("The first half, "),
        double.answer("and the second."),
        cutText("Again "),
        cutText("and again"),
        double.answer("hello")
      ])
      assert.deepStrictEqual(yield* say("tell me"), ["The first half, and the second."])
      const continued = yield* sent(provider, 1)
      assert.include(continued, "The first half, ")
      assert.include(continued, "Continue exactly where it stopped")
      const [text] = yield* say("more")
      assert.match(text ?? "", /^Again and again\n\n\(The answer is incomplete: .*cut at 900 tokens/u)
      assert.deepStrictEqual(yield* say("hello"), ["hello"])
    })
  )

  it.live("tells the user what a provider or its model refused, in its words, and answers the next message", () =>
    Effect.gen(function* () {
      const { say } = yield* talking([double.failing(400, "no such thing"), refusedByModel, double.answer("hello")])
      assert.match((yield* say("one"))[0] ?? "", /answered 400: .*no such thing/u)
      assert.match((yield* say("two"))[0] ?? "", /the model refused: I cannot help with that\./u)
      assert.deepStrictEqual(yield* say("three"), ["hello"])
    })
  )

  it.live("leaves out the parameters that a provider refuses, once each, and names the limit as it wants it", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* talking([double.answer("one"), double.answer("two")], {
        refuses: ["temperature", "max_tokens"]
      })
      assert.deepStrictEqual([...(yield* say("one")), ...(yield* say("two"))], ["one", "two"])
      assert.deepStrictEqual(
        (yield* provider.takeRefusals).map(({ param }) => param),
        ["temperature", "max_tokens"]
      )
      const keys = (yield* provider.requests.all).map(({ body }) => {
        const { max_completion_tokens, max_tokens, temperature } = body as Readonly<Record<string, unknown>>
        return [temperature, max_tokens, max_completion_tokens]
      })
      assert.deepStrictEqual(keys, [
        [0.7, 4096, undefined],
        [undefined, 4096, undefined],
        [undefined, undefined, 4096],
        [undefined, undefined, 4096]
      ])
    })
  )
})

/** Edge starts the job with the first message and tells how it ended; the job is answered by these replies, in order. */
const working = Effect.fnUntraced(function* (replies: ReadonlyArray<double.Reply>) {
  const talk = yield* talking([])
  const own = [...replies]
  yield* talk.provider.otherwise(({ body }) => {
    const text = JSON.stringify(body)
    if (text.includes("You carry out one task")) return own.shift() ?? double.failing(500, "no reply left")
    if (text.includes("<choir-note>\\nReport:")) return double.answer("it ended")
    return text.includes('"name":"choir-core-spawn"') ? double.answer("fine") : spawn
  })
  yield* talk.plane.say("go")
  yield* talk.plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
  return { ...talk, stopped: ofType(talk.plane.events, "CoreStopped")[0]?.payload }
})

describe("a job", () => {
  it.live("learns that its call was cut, and that its reply was empty, and ends with its result", () =>
    Effect.gen(function* () {
      const { plane, say, stopped } = yield* working([cutCall, empty, double.answer("done")])
      assert.deepStrictEqual([stopped?.outcome, stopped?.result], ["completed", "done"])
      const result = ofType(plane.events, "ToolResultCommitted").find(({ lane }) => lane === "core:work")
      assert.include(result?.payload.summary, "cut at 900 tokens")
      assert.strictEqual((yield* say("hello")).length, 1)
    })
  )

  it.live("ends with the model's limit as its reason where every call is cut", () =>
    Effect.gen(function* () {
      const { stopped } = yield* working(Array.from({ length: 12 }, () => cutCall))
      assert.strictEqual(stopped?.outcome, "stuck")
      assert.include(stopped?.summary, "Raise the model's max_tokens")
    })
  )

  it.live("joins a result that was cut, and never passes one off as whole that is not", () =>
    Effect.gen(function* () {
      const joined = yield* working([cutText("one "), double.answer("two")])
      assert.deepStrictEqual([joined.stopped?.outcome, joined.stopped?.result], ["completed", "one two"])
      const broken = yield* working([cutText("one "), cutText("two")])
      assert.deepStrictEqual([broken.stopped?.outcome, broken.stopped?.result], ["error", "one two"])
      assert.include(broken.stopped?.summary, "cut at 900 tokens")
      assert.strictEqual((yield* broken.say("hello")).length, 1)
    })
  )

  it.live("ends with the reason after two empty replies or a refused request, and edge answers the next message", () =>
    Effect.gen(function* () {
      const silent = yield* working([empty, empty])
      assert.deepStrictEqual(
        [silent.stopped?.outcome, silent.stopped?.summary],
        ["error", "the model's reply was empty, and so was the one after it"]
      )
      assert.strictEqual((yield* silent.say("hello")).length, 1)
      const refused = yield* working([double.failing(400, "no such thing")])
      assert.strictEqual(refused.stopped?.outcome, "error")
      assert.include(refused.stopped?.summary, "no such thing")
      assert.strictEqual((yield* refused.say("hello")).length, 1)
    })
  )
})
