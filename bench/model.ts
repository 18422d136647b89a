/**
 * The model of the benchmarks, a process of its own: chat completions without latency, or with the one that is asked for. What it
 * should do is in the user's message, as `bench:<tool>:<answers>:<latency>:<name>`: so many answers with a tool call, or with ten
 * for `reads`, and then a text. `jobs:<count>:` before it starts so many core jobs with that task. It only looks for that text, so
 * that its own work stays small, and it notes when requests arrive: a step is what lies between two of them.
 *
 * The parent gets `{ url }` once, then one {@link Run} after each last answer.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { fileText, pathOf } from "./work.ts"

/** One series of model calls: a turn, or a job. */
export interface Run {
  readonly key: string
  /** When its requests arrived, in ms, by the model's clock. */
  readonly at_ms: ReadonlyArray<number>
  /** The bodies of its last requests, at most {@link BODIES_KEPT}. */
  readonly bodies: ReadonlyArray<string>
}

/** A turn of twenty tool calls has one request more. */
const BODIES_KEPT = 21

const TASK = /(?:jobs:(\d+):)?bench:(\w+):(\d+):(\d+):([\w-]+)/u

interface Open {
  readonly at_ms: Array<number>
  readonly bodies: Array<string>
}

const open = new Map<string, Open>()

const call = (name: string, input: unknown) => ({
  id: "call",
  type: "function",
  function: { name, arguments: JSON.stringify(input) }
})

const completion = (message: unknown, finish_reason: string) =>
  JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: 1,
    model: "bench",
    choices: [{ index: 0, message, finish_reason }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  })

const READS = 10

const toolCalls = (tool: string, step: number, name: string): ReadonlyArray<unknown> => {
  const read = (at: number) => call("choir-fs-read", { path: pathOf(at) })
  switch (tool) {
    case "write":
      return [call("choir-fs-write", { path: `${name}.txt`, content: fileText(step), mode: "overwrite" })]
    case "reads":
      return Array.from({ length: READS }, (_, index) => read(step * READS + index))
    default:
      return [read(step)]
  }
}

const says = (content: string) => completion({ role: "assistant", content }, "stop")
const calls = (tool_calls: ReadonlyArray<unknown>) =>
  completion({ role: "assistant", content: null, tool_calls }, "tool_calls")

const USER = '"role":"user","content":"'

/** The beginning of a job's first message, behind which its summary and notes are messages of a user as well. */
const JOB = `${USER}Job: `

/** The task of a job, or of a prompt's last message from a user; none when it is a report. */
const taskOf = (body: string): RegExpExecArray | null => {
  const job = body.indexOf(JOB)
  const at = job < 0 ? body.lastIndexOf(USER) : job
  return TASK.exec(body.slice(at, at + 400))
}

/** The beginning of a compaction's question; what a window gives way to is one sentence. */
const COMPACTION = "<choir-note>\\nCompaction:"
const DELTA = "choir-memory-delta"
const DELTA_CALL = calls([call(DELTA, { mode: "overwrite", summary_update: "Files were read and written." })])

const reply = (lane: string, body: string): { readonly text: string; readonly wait_ms: number } => {
  if (body.includes(COMPACTION)) return { text: DELTA_CALL, wait_ms: 0 }
  const task = taskOf(body)
  if (task === null) return { text: says("reported"), wait_ms: 0 }
  const [, jobs, tool = "", count = "", latency = "", name = ""] = task
  const key = `${lane}${task[0]}`
  const run = open.get(key) ?? { at_ms: [], bodies: [] }
  open.set(key, run)
  const step = run.at_ms.push(performance.now()) - 1
  if (run.bodies.push(body) > BODIES_KEPT) run.bodies.shift()
  if (jobs !== undefined && step === 0) {
    const spawns = Array.from({ length: Number(jobs) }, (_, job) => ({
      job_name: `${name}-${job}`,
      task_spec: `bench:${tool}:${count}:${latency}:${name}-${job}`
    }))
    return { text: calls(spawns.map((spawn) => call("choir-core-spawn", spawn))), wait_ms: 0 }
  }
  if (jobs !== undefined || step >= Number(count)) {
    open.delete(key)
    process.send?.({ key, ...run } satisfies Run)
    return { text: says("done"), wait_ms: Number(latency) }
  }
  return { text: calls(toolCalls(tool, step, name)), wait_ms: Number(latency) }
}

const answer = async (request: IncomingMessage, response: ServerResponse) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { text, wait_ms } = reply(String(request.headers["x-lane"] ?? ""), Buffer.concat(chunks).toString())
  if (wait_ms > 0) await sleep(wait_ms)
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text)
}

const server = createServer((request, response) => void answer(request, response))
server.listen(0, "127.0.0.1", () =>
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` })
)
process.on("disconnect", () => process.exit(0))
