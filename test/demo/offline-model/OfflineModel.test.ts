import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { OFFLINE_MODEL_BODY_BYTES_MAX, serveOfflineModel } from "#demo/offline-model/OfflineModel.ts"

const LOOPBACK = { host: "127.0.0.1", port: 0 }
const SYSTEM = { role: "system", content: "You are an agent." }
const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    code: Schema.String,
    param: Schema.NullOr(Schema.String)
  })
})

interface Chunk {
  readonly choices: ReadonlyArray<{
    readonly delta: {
      readonly content?: string
      readonly tool_calls?: ReadonlyArray<{ readonly index: number; readonly function: { readonly name: string } }>
    }
    readonly finish_reason: string | null
  }>
  readonly usage?: { readonly completion_tokens: number }
}

const post = Effect.fnUntraced(function* (url: string, body: string) {
  const client = yield* HttpClient.HttpClient
  const request = HttpClientRequest.post(url).pipe(HttpClientRequest.bodyText(body, "application/json"))
  const response = yield* client.execute(request)
  return { status: response.status, body: yield* response.json }
})

const chat = (endpoint: string, body: unknown) => post(`${endpoint}/chat/completions`, JSON.stringify(body))

describe("OfflineModel", () => {
  it.live("answers in the protocol's shape, without a key", () =>
    Effect.gen(function* () {
      const endpoint = yield* serveOfflineModel(LOOPBACK)
      const { body, status } = yield* chat(endpoint, {
        model: "offline-model",
        messages: [SYSTEM, { role: "user", content: [{ type: "text", text: "say hi" }] }],
        temperature: 0.7
      })
      assert.strictEqual(status, 200)
      const { created, ...rest } = body as { readonly created: number }
      assert.isAbove(created, 1_600_000_000)
      assert.deepStrictEqual(rest, {
        id: "chatcmpl-offline-2-7",
        object: "chat.completion",
        model: "offline-model",
        system_fingerprint: "offline-model-1",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "hi", refusal: null },
            logprobs: null,
            finish_reason: "stop"
          }
        ],
        usage: { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 }
      })
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.live("streams its words and its calls where a stream is asked for", () =>
    Effect.gen(function* () {
      const endpoint = yield* serveOfflineModel(LOOPBACK)
      const tool = { name: "choir-exec", description: "Runs", parameters: { type: "object" } }
      const streamed = Effect.fnUntraced(function* (content: string) {
        const request = HttpClientRequest.post(`${endpoint}/chat/completions`).pipe(
          HttpClientRequest.bodyJsonUnsafe({
            model: "offline-model",
            messages: [SYSTEM, { role: "user", content }],
            tools: [{ type: "function", function: tool }],
            stream: true,
            stream_options: { include_usage: true }
          })
        )
        const response = yield* (yield* HttpClient.HttpClient).execute(request)
        assert.include(response.headers["content-type"], "text/event-stream")
        const blocks = (yield* response.text).trimEnd().split("\n\n")
        assert.strictEqual(blocks.pop(), "data: [DONE]")
        return blocks.map((block) => JSON.parse(block.slice("data: ".length)) as Chunk)
      })
      const said = yield* streamed("say hi there")
      assert.strictEqual(said.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), "hi there")
      assert.strictEqual(said.at(-2)?.choices[0]?.finish_reason, "stop")
      assert.isAbove(said.at(-1)?.usage?.completion_tokens ?? 0, 0)
      const called = yield* streamed("run ls")
      const [call] = called.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
      assert.deepStrictEqual([call?.index, call?.function.name], [0, "choir-exec"])
      assert.strictEqual(called.at(-2)?.choices[0]?.finish_reason, "tool_calls")
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.live("lists itself as the only model", () =>
    Effect.gen(function* () {
      const endpoint = yield* serveOfflineModel(LOOPBACK)
      const response = yield* HttpClient.get(`${endpoint}/models`)
      const body = (yield* response.json) as { readonly data: ReadonlyArray<{ readonly id: string }> }
      assert.deepStrictEqual(
        body.data.map((model) => model.id),
        ["offline-model"]
      )
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.live("refuses odd requests with the protocol's error, and goes on serving", () =>
    Effect.gen(function* () {
      const endpoint = yield* serveOfflineModel(LOOPBACK)
      const user = { role: "user", content: "hi" }
      const odd: ReadonlyArray<readonly [url: string, body: string, status: number, code: string]> = [
        ["/chat/completions", "", 400, "invalid_request"],
        ["/chat/completions", "{", 400, "invalid_request"],
        ["/chat/completions", "[]", 400, "invalid_request"],
        ["/chat/completions", `{"model":"offline-model","messages":[]}`, 400, "invalid_request"],
        ["/chat/completions", `{"model":"offline-model","messages":[{"role":"robot"}]}`, 400, "invalid_request"],
        ["/chat/completions", JSON.stringify({ model: "gpt", messages: [SYSTEM, user] }), 404, "model_not_found"],
        ["/chat/completions", "a".repeat(OFFLINE_MODEL_BODY_BYTES_MAX + 1), 413, "body_too_large"],
        ["/embeddings", "{}", 404, "unknown_url"],
        ["/models", "{}", 404, "unknown_url"]
      ]
      for (const [url, sent, status, code] of odd) {
        const reply = yield* post(`${endpoint}${url}`, sent)
        assert.strictEqual(reply.status, status, url)
        const { error } = yield* Schema.decodeUnknownEffect(ErrorBody)(reply.body)
        assert.strictEqual(error.code, code)
      }
      assert.strictEqual((yield* chat(endpoint, { model: "offline-model", messages: [SYSTEM, user] })).status, 200)
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

  it.live("says which address is taken and what to do", () =>
    Effect.gen(function* () {
      const port = Number(new URL(yield* serveOfflineModel(LOOPBACK)).port)
      const error = yield* Effect.flip(serveOfflineModel({ host: "127.0.0.1", port }))
      assert.include(error.message, `cannot listen on 127.0.0.1:${port}`)
      assert.include(error.message, "--port 0")
    })
  )

  it.live("prints its endpoint as one JSON line and stops with 0 on SIGTERM", () =>
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      const main = new URL("../../../demo/offline-model/main.ts", import.meta.url).pathname
      const child = yield* spawner.spawn(ChildProcess.make(process.execPath, [main, "--port", "0"]))
      const lines = child.stdout.pipe(Stream.decodeText(), Stream.splitLines)
      const line = yield* Stream.runHead(lines).pipe(Effect.flatMap(Effect.fromOption))
      const { endpoint } = JSON.parse(line) as { readonly endpoint: string }
      const { status } = yield* chat(endpoint, {
        model: "offline-model",
        messages: [SYSTEM, { role: "user", content: "hi" }]
      })
      assert.strictEqual(status, 200)
      yield* child.kill({ killSignal: "SIGTERM" })
      assert.strictEqual(yield* child.exitCode, 0)
    }).pipe(Effect.provide([NodeHttpClient.layerUndici, NodeServices.layer]))
  )
})
