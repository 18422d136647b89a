/**
 * The offline model itself: a pure function from a request to a reply (E3). What was done so far is read from the
 * conversation, so that a crash or a second copy of the program changes nothing.
 */
import { isDeepStrictEqual } from "node:util"
import { offeredName, ToolName, toWireName } from "#schema/Tool.ts"
import { type ChatCompletion, type ChatRequest, OFFLINE_MODEL, textOf } from "./ChatCompletion.ts"
import { asksToRemember, type Exchange, turnOf } from "./Conversation.ts"
import { type Instruction, parseInstructions } from "./Instruction.ts"
import { keepMemory, MEMORY_DELTA, SESSION_SUMMARY, sumUp } from "./keepMemory.ts"
import { reportSentence, smallTalk } from "./smallTalk.ts"
import { type ToolResult, clip, needsReading, sentence } from "./ToolResult.ts"

/** Tool calls that the offline model puts into one reply. */
const OFFLINE_MODEL_PARALLEL_CALLS_MAX = 16
/** How often the offline model calls for one instruction: a refused write is read and tried again. */
export const OFFLINE_MODEL_CALLS_PER_STEP_MAX = 3
/** UTF-16 units of a whole answer of the offline model. */
const OFFLINE_MODEL_TEXT_CHARS_MAX = 32_000

interface Call {
  readonly tool: string
  readonly input: unknown
}

/** The outcome of a step: calls to make first, or the text to say about it. */
type Progress = { readonly ask: ReadonlyArray<Call> } | { readonly told: ReadonlyArray<string | undefined> }

/** Results not yet attributed to a step, and the tools that may be called. */
interface Turn {
  readonly results: Array<Exchange>
  readonly offered: ReadonlySet<string>
  readonly recalled: ReadonlyArray<string>
}

const wire = (name: string): string => toWireName(ToolName.make(name))
const SPAWN = wire("choir.core.spawn")
const READ = wire("choir.fs.read")

/** The call of a tool by the name by which models are offered it. */
const named = (tool: string, input: Call["input"]): Call => {
  const offered = offeredName(tool)
  const kind = tool.replaceAll(".", "-").slice(offered.length + 1)
  return { tool: offered, input: kind === "" ? input : { kind, proposal: input } }
}

/** The tool call of a step, or `undefined` for a step that only speaks. */
const callOf = (step: Instruction): Call | undefined => {
  switch (step.kind) {
    case "read":
      return { tool: READ, input: { path: step.path } }
    case "write":
      return { tool: wire("choir.fs.write"), input: { path: step.path, content: step.content, mode: "overwrite" } }
    case "append":
      return { tool: wire("choir.fs.write"), input: { path: step.path, content: step.content, mode: "append" } }
    case "search": {
      const where = step.path === undefined ? {} : { path: step.path }
      return { tool: wire("choir.fs.search"), input: { pattern: step.pattern, ...where } }
    }
    case "run":
      return { tool: wire("choir.exec"), input: { command: step.command } }
    case "call":
      return named(step.tool, step.input)
    case "job":
      return { tool: SPAWN, input: { job_name: step.job, task_spec: step.task } }
    case "tell":
      return { tool: wire("choir.core.inject"), input: { job_name: step.job, content: step.content } }
    case "cancel":
      return { tool: wire("choir.core.cancel"), input: { job_name: step.job } }
    case "jobs":
      return { tool: wire("choir.core.list"), input: {} }
    case "remember":
      return { tool: wire("choir.memory.upsert"), input: { key: step.key, text: step.text } }
    case "recall":
      return { tool: wire("choir.memory.query"), input: { store: step.store, query: step.query } }
    case "report":
      return { tool: wire("choir.core.report"), input: { kind: step.event, text: step.text } }
    case "say":
    case "unusable":
      return undefined
  }
}

/** The result of a call that was already made. Results go to equal calls in the order in which they came. */
const resultOf = (turn: Turn, call: Call): ToolResult | undefined => {
  const at = turn.results.findIndex((made) => made.tool === call.tool && isDeepStrictEqual(made.input, call.input))
  return at < 0 ? undefined : turn.results.splice(at, 1)[0]?.result
}

const notOffered = (step: Instruction, call: Call) =>
  `"${clip(step.source, 200)}" failed: I am not offered the tool ${call.tool} here.`

const told = (line: string | undefined): Progress => ({ told: [line] })

const follow = (turn: Turn, step: Instruction): Progress => {
  if (step.kind === "say") return told(step.text)
  const call = callOf(step)
  if (call === undefined) {
    return told(`"${clip(step.source, 200)}" failed: ${step.kind === "unusable" ? step.problem : "no tool fits"}.`)
  }
  const result = resultOf(turn, call)
  if (result === undefined) return turn.offered.has(call.tool) ? { ask: [call] } : told(notOffered(step, call))
  if ((step.kind !== "write" && step.kind !== "append") || !needsReading(result)) return told(sentence(step, result))
  const reading: Call = { tool: READ, input: { path: step.path } }
  if (resultOf(turn, reading) === undefined) {
    return turn.offered.has(READ) ? { ask: [reading] } : told(sentence(step, result))
  }
  const second = resultOf(turn, call)
  return second === undefined ? { ask: [call] } : told(sentence(step, second))
}

/** All jobs of a message start together, so that they run at the same time. */
const startJobs = (turn: Turn, jobs: ReadonlyArray<Instruction>): Progress => {
  const progress = jobs.map((job) => follow(turn, job))
  const ask = progress.flatMap((one) => ("ask" in one ? one.ask : []))
  return ask.length > 0
    ? { ask: ask.slice(0, OFFLINE_MODEL_PARALLEL_CALLS_MAX) }
    : { told: progress.flatMap((one) => ("told" in one ? one.told : [])) }
}

const LOST = "I stopped here: the conversation does not show my calls as I made them."

/** Goes through the steps until one needs a call; answers with what all of them gave otherwise. */
const followAll = (turn: Turn, text: string): { readonly ask: ReadonlyArray<Call> } | { readonly answer: string } => {
  const { ignored, steps } = parseInstructions(text)
  if (steps.length === 0) return { answer: smallTalk(text, turn.recalled) }
  const exchanges = turn.results.length
  const jobs = steps.filter((step) => step.kind === "job")
  const lines: Array<string | undefined> = []
  for (const step of steps) {
    if (step.kind === "job" && step !== jobs[0]) continue
    const progress = step.kind === "job" ? startJobs(turn, jobs) : follow(turn, step)
    if ("told" in progress) lines.push(...progress.told)
    else if (exchanges < steps.length * OFFLINE_MODEL_CALLS_PER_STEP_MAX) return progress
    else {
      lines.push(LOST)
      break
    }
  }
  if (ignored.length > 0)
    lines.push(`I left out what is not an instruction: ${ignored.map((line) => `"${clip(line, 80)}"`).join(", ")}`)
  return { answer: lines.filter((line) => line !== undefined && line !== "").join("\n") || "Done." }
}

const promptChars = ({ messages, tools }: ChatRequest): number =>
  JSON.stringify(tools ?? []).length +
  messages.reduce((sum, message) => {
    const calls = message.role === "assistant" ? (message.tool_calls ?? []) : []
    return sum + textOf(message).length + calls.reduce((chars, call) => chars + call.function.arguments.length, 0)
  }, 0)

/** Tokens are counted as a quarter of the UTF-16 units, a common estimate for English text. */
export const tokens = (chars: number): number => Math.ceil(chars / 4)

/** The calls whose arguments are the answer. */
const askedForText = (request: ChatRequest, offered: ReadonlySet<string>) => {
  if (asksToRemember(request)) return { ask: [{ tool: MEMORY_DELTA, input: keepMemory(request) }] }
  return offered.has(SESSION_SUMMARY) ? { ask: [{ tool: SESSION_SUMMARY, input: sumUp(request) }] } : undefined
}

const choiceOf = (request: ChatRequest): ChatCompletion["choices"][0] => {
  const limit = request.max_completion_tokens ?? request.max_tokens ?? OFFLINE_MODEL_TEXT_CHARS_MAX
  const turn = turnOf(request, SPAWN)
  const offered = new Set(request.tool_choice === "none" ? [] : (request.tools ?? []).map((tool) => tool.function.name))
  const next =
    askedForText(request, offered) ??
    (turn.kind === "report"
      ? { answer: reportSentence(turn.text) }
      : followAll({ results: [...turn.exchanges], offered, recalled: turn.recalled }, turn.text))
  const shared = { index: 0, logprobs: null } as const
  if ("answer" in next) {
    const content = clip(next.answer, Math.min(limit * 4, OFFLINE_MODEL_TEXT_CHARS_MAX))
    const message = { role: "assistant", content, refusal: null } as const
    return { ...shared, message, finish_reason: content.length < next.answer.length ? "length" : "stop" }
  }
  const made = request.messages.reduce(
    (sum, message) => sum + (message.role === "assistant" ? (message.tool_calls?.length ?? 0) : 0),
    0
  )
  const tool_calls = next.ask.map((call, index) => ({
    id: `call_${made + index + 1}`,
    type: "function" as const,
    function: { name: call.tool, arguments: JSON.stringify(call.input) }
  }))
  return {
    ...shared,
    message: { role: "assistant", content: null, refusal: null, tool_calls },
    finish_reason: "tool_calls"
  }
}

/**
 * The reply to a request: the same for the same request, whatever came before.
 *
 * `created` is the time to put into the reply, in seconds since 1970.
 */
export const respond = (request: ChatRequest, created: number): ChatCompletion => {
  const choice = choiceOf(request)
  const { content, tool_calls } = choice.message
  const said = content ?? (tool_calls ?? []).map((call) => call.function.name + call.function.arguments).join("")
  const prompt_tokens = tokens(promptChars(request))
  const completion_tokens = tokens(said.length)
  return {
    id: `chatcmpl-offline-${request.messages.length}-${prompt_tokens}`,
    object: "chat.completion",
    created,
    model: OFFLINE_MODEL,
    system_fingerprint: "offline-model-1",
    choices: [choice],
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
  }
}
