/**
 * The model of the load test, a process of its own: it answers at once, but no more often than it is told, so that all agents together
 * commit events at a steady rate. `load:<jobs>` in a user's message makes edge start so many jobs; a job reads three files a step until
 * the parent says that it is enough.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { bodyRefusal } from "#demo/dialects/Dialect.ts"
import type { Traits } from "#demo/dialects/Rule.ts"

/** What the parent orders: how many steps of jobs there are in a second, or that jobs end now. */
export type Order = { readonly steps_per_second: number } | { readonly end: true }

/** Calls of a job's step: with the output, and three events of each call, ten events. */
const CALLS = 3
export const EVENTS_A_STEP = 1 + 3 * CALLS
/** Neighbouring steps read other files, or the runtime would take them for a loop of the model's. */
export const FILES = 64

/** Slow until the parent says otherwise. */
let pace_ms = 100
let ended = false
let next_at = 0
let steps = 0

const completion = (message: unknown, finish_reason: string) =>
  JSON.stringify({
    id: "chatcmpl-load",
    object: "chat.completion",
    created: 1,
    model: "load",
    choices: [{ index: 0, message, finish_reason }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  })

const says = (content: string) => completion({ role: "assistant", content }, "stop")
const calls = (name: string, inputs: ReadonlyArray<unknown>) =>
  completion(
    {
      role: "assistant",
      content: null,
      tool_calls: inputs.map((input) => ({
        id: "call",
        type: "function",
        function: { name, arguments: JSON.stringify(input) }
      }))
    },
    "tool_calls"
  )

/** The beginning of a compaction's question. */
const COMPACTION = "<choir-note>\\nCompaction:"
const DELTA = "choir-memory-delta"
const REMEMBERED = calls(DELTA, [{ mode: "overwrite", summary_update: "Files were read." }])

/** When the next step may be answered; steps are as far apart as the pace says. */
const turn = async (): Promise<void> => {
  next_at = Math.max(performance.now(), next_at + pace_ms)
  await sleep(Math.max(0, next_at - performance.now()))
}

const answer = async (body: string): Promise<string> => {
  if (body.includes(COMPACTION)) return REMEMBERED
  if (body.includes('"name":"choir-core-report"')) {
    if (ended) return says("done")
    await turn()
    steps += 1
    const paths = Array.from({ length: CALLS }, (_, index) => ({ path: `${(CALLS * steps + index) % FILES}.txt` }))
    return calls("choir-fs-read", paths)
  }
  const at = body.lastIndexOf('"role":"user","content":"')
  const jobs = /^load:(\d+)/u.exec(body.slice(at + 25, at + 40))?.[1]
  if (jobs === undefined || body.indexOf('"role":"tool"', at) > 0) return says("started")
  const names = Array.from({ length: Number(jobs) }, (_, job) => `job-${job}`)
  return calls(
    "choir-core-spawn",
    names.map((job_name) => ({ job_name, task_spec: "read the files" }))
  )
}

/** The rules of a strict provider, with an estimate of tokens: a load test is not to pay for a tokenizer. */
const TRAITS: Traits = {
  context_window: 128_000,
  refuses: [],
  extensions: [],
  count: (text) => Math.ceil(text.length / 4)
}

const respond = async (request: IncomingMessage, response: ServerResponse) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks).toString()
  const refusal = bodyRefusal(parseJson(body), TRAITS)
  if (refusal !== undefined) process.send?.({ refused: refusal.message })
  const text = refusal === undefined ? await answer(body) : JSON.stringify(refusal.body)
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) }
  response.writeHead(refusal === undefined ? 200 : 400, headers).end(text)
}

if (process.send !== undefined) {
  const server = createServer((request, response) => void respond(request, response))
  server.listen(0, "127.0.0.1", () =>
    process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` })
  )
  process.on("message", (message) => {
    const order = message as Order
    if ("end" in order) ended = true
    else {
      pace_ms = 1000 / order.steps_per_second
      next_at = performance.now()
    }
  })
  process.on("disconnect", () => process.exit(0))
}
