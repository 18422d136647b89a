/** A site of a test, and the tool that fetches from it as `site.test`. */
import type { ServerResponse } from "node:http"
import { Effect, Layer, Schema } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { PageReader } from "#src/choird/workers/PageReader.ts"
import { webFetch } from "#src/choird/workers/webFetch.ts"
import { httpServer, layerDialer, PUBLIC_ADDRESS, type Web } from "./web.ts"

const CALLER: Caller = {
  session_id: SessionId.make("0000000000000001"),
  agent_id: AgentId.make("ada"),
  epoch: 1,
  standing: "current"
}

interface Asked {
  readonly path: string
  readonly accept: string
}

export const paragraph =
  "<p>Tea is a drink that is made of leaves and hot water, and people have it in the afternoon. </p>"
export const html = (body: string, head = "") =>
  `<!doctype html><html><head><title>Tea</title>${head}</head><body>${body}</body></html>`

type Answer = (response: ServerResponse, asked: Asked) => void

export const page =
  (text: string | Buffer, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers }).end(text)
  }
export const leads =
  (location: string): Answer =>
  (response) =>
    void response.writeHead(302, { location }).end("no page")

/** Sends a chunk until nobody listens. */
export const endless =
  (chunk: Buffer, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "text/html", ...headers })
    const more = () => {
      while (response.write(chunk));
    }
    response.on("drain", more).on("error", () => undefined)
    more()
  }

/** A site with these answers, and the tool that fetches from it as `site.test`. */
export const rig = Effect.fnUntraced(function* (
  answers: Readonly<Record<string, Answer>>,
  { more = {}, pageMs }: { readonly pageMs?: number; readonly more?: NonNullable<Web["names"]> } = {}
) {
  const dialled: Array<string> = []
  const asked: Array<Asked> = []
  /** The names that were looked up, with how often. */
  const lookedUp = new Map<string, number>()
  const port = yield* httpServer((request, response) => {
    const one = { path: request.url ?? "", accept: request.headers.accept ?? "" }
    asked.push(one)
    const answer = answers[one.path]
    if (answer === undefined) response.writeHead(404, { "content-type": "text/html" }).end("<h1>not found</h1>")
    else answer(response, one)
  })
  const names = {
    "site.test": [[PUBLIC_ADDRESS]],
    "inner.test": [["127.0.0.1"]],
    "rebind.test": [[PUBLIC_ADDRESS], ["127.0.0.1"]],
    ...more
  }
  const parts = Layer.merge(
    layerDialer({ asked: lookedUp, names, dialled, served: { [PUBLIC_ADDRESS]: port } }),
    PageReader.layer({ pageMs })
  )
  const tool = yield* Effect.provideContext(webFetch, yield* Layer.build(parts))
  const fetch = (url: string, offset?: number) =>
    Effect.flatten(tool.prepare({ url, ...(offset === undefined ? {} : { offset }) }, CALLER)).pipe(Effect.orDie)
  return { asked, dialled, fetch, names: lookedUp, port }
})

export const textOf = (output: Schema.Json): string =>
  Schema.decodeUnknownSync(Schema.Struct({ text: Schema.String }))(output).text
export const errorOf = (output: Schema.Json): string =>
  Schema.decodeUnknownSync(Schema.Struct({ error: Schema.String }))(output).error
