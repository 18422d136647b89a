/** Answers of servers of chat completions. */
import { argumentsOf, type Meaning, piecesOf, WORDS } from "./Meaning.ts"
import { blockOf, type ChatServer, errorOf, type Keys, type Recording } from "./Server.ts"

type Piece = Readonly<Record<string, unknown>>

const countsOf = ({ counts }: ChatServer, { usage }: Meaning): Piece => {
  const { cached, input, output, thought } = usage
  const plain = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  switch (counts) {
    case "plain":
      return plain
    case "deepseek":
      return {
        ...plain,
        prompt_cache_hit_tokens: cached,
        prompt_cache_miss_tokens: input - cached,
        completion_tokens_details: { reasoning_tokens: thought }
      }
    case "moonshot":
      return { ...plain, cached_tokens: cached }
    case "openrouter":
    case "openai":
      return {
        ...plain,
        prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: thought, audio_tokens: 0 },
        ...(counts === "openrouter" ? { cost: 0.0012, is_byok: false } : {})
      }
  }
}

/** Thoughts that a server leaves in the text. */
const taggedText = ({ reasoning }: ChatServer, { text = "", thoughts }: Meaning): string => {
  if (thoughts === undefined) return text
  if (reasoning === "think tag") return `<think>\n${thoughts}\n</think>\n\n${text}`
  if (reasoning === "thought tag") return `<thought>${thoughts}</thought>${text}`
  return reasoning === "open think tag" ? `${thoughts}\n</think>\n\n${text}` : text
}

const thoughtKeys = ({ reasoning }: ChatServer, thoughts: string): Piece => {
  if (reasoning === "reasoning" || reasoning === "reasoning_content") return { [reasoning]: thoughts }
  return reasoning === "details"
    ? {
        reasoning: thoughts,
        reasoning_details: [{ type: "reasoning.text", text: thoughts, index: 0, format: "unknown" }]
      }
    : {}
}

const contentOf = (server: ChatServer, meaning: Meaning, text: string): unknown =>
  server.reasoning === "parts" && meaning.thoughts !== undefined
    ? [
        { type: "thinking", thinking: [{ type: "text", text: meaning.thoughts }], closed: true },
        { type: "text", text }
      ]
    : text

const idOf = ({ call_ids }: ChatServer, name: string, index: number): string =>
  call_ids?.replace("$name", name).replace("$index", String(index)) ?? `call_${index}`

const wholeCall = (server: ChatServer, meaning: Meaning, index: number): Piece => {
  const name = meaning.calls?.[index]?.name ?? ""
  const text = argumentsOf(meaning, index)
  const isObject = server.calls === "object" && meaning.cut_call === undefined
  const { extra_content } = server.call
  return {
    id: idOf(server, name, index),
    type: "function",
    function: { name, arguments: isObject ? (JSON.parse(text) as unknown) : text },
    ...(extra_content === undefined || index > 0 ? {} : { extra_content })
  }
}

const wholeOf = (server: ChatServer, meaning: Meaning): unknown => {
  const { calls = [], end, refusal, thoughts } = meaning
  const text = taggedText(server, meaning)
  const reason = server.finish === "none" ? {} : { finish_reason: server.reasons[end] }
  const message = {
    role: "assistant",
    ...server.message,
    content: calls.length > 0 && text === "" ? null : contentOf(server, meaning, text),
    ...(thoughts === undefined ? {} : thoughtKeys(server, thoughts)),
    ...(refusal === undefined ? {} : { refusal, content: null }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((_, index) => wholeCall(server, meaning, index)) })
  }
  return {
    ...server.envelope,
    object: "chat.completion",
    ...server.whole_extra,
    choices: [{ index: 0, message, ...server.choice, ...reason }],
    ...(server.usage === "none" ? {} : { usage: countsOf(server, meaning) })
  }
}

/** The pieces of one call. */
const callPieces = (server: ChatServer, meaning: Meaning, index: number): ReadonlyArray<Piece> => {
  const whole = wholeCall(server, meaning, index)
  if (server.calls !== "pieces") return [{ tool_calls: [{ index, ...whole }] }]
  const named = whole["function"] as Piece
  const later = server.call.id_empty_later === true ? { id: "", type: "function" } : {}
  return [
    { tool_calls: [{ index, ...whole, function: { ...named, arguments: "" } }] },
    ...piecesOf(argumentsOf(meaning, index)).map((text) => ({
      tool_calls: [
        { index, ...later, function: { ...(server.call.id_empty_later === true ? { name: "" } : {}), arguments: text } }
      ]
    }))
  ]
}

const deltasOf = (server: ChatServer, meaning: Meaning): ReadonlyArray<Piece> => {
  const { calls = [], refusal, thoughts } = meaning
  const separate = thoughts === undefined ? [] : piecesOf(thoughts)
  const thinking =
    server.reasoning === "parts"
      ? separate.map((text) => ({ content: [{ type: "thinking", thinking: [{ type: "text", text }] }] }))
      : separate.map((text) => thoughtKeys(server, text)).filter((keys) => Object.keys(keys).length > 0)
  return [
    ...thinking,
    ...piecesOf(taggedText(server, meaning)).map((content) => ({ content })),
    ...(refusal === undefined ? [] : piecesOf(refusal).map((text) => ({ refusal: text }))),
    ...calls.flatMap((_, index) => callPieces(server, meaning, index))
  ]
}

const blocksOf = (server: ChatServer, meaning: Meaning): ReadonlyArray<string> => {
  const { envelope, finish, usage } = server
  const counts = countsOf(server, meaning)
  const unfinished = server.unfinished === "absent" ? {} : { finish_reason: server.unfinished }
  const reason = server.finish === "none" ? unfinished : { finish_reason: server.reasons[meaning.end] }
  const chunk = (delta: Piece, ending: Piece, more: Piece = {}) => ({
    ...envelope,
    choices: [{ index: 0, delta: { ...server.delta, ...delta }, ...server.choice, ...ending }],
    ...(usage === "each" ? { usage: counts } : {}),
    ...more
  })
  const atEnd: Piece =
    usage === "last"
      ? { usage: counts }
      : usage === "x_groq"
        ? { x_groq: { id: "req_1", usage: counts }, usage: counts }
        : {}
  const deltas = deltasOf(server, meaning)
  const inLast = finish === "with last" && deltas.length > 0
  const ending = { ...reason, ...(usage === "choice" ? { usage: counts } : {}) }
  const chunks = [
    ...server.opening.map((first): Keys | Piece => ({ ...envelope, ...first })),
    ...deltas.slice(0, inLast ? -1 : undefined).map((delta) => chunk(delta, unfinished)),
    ...(finish === "none" ? [] : [chunk(inLast ? (deltas.at(-1) ?? {}) : {}, ending, atEnd)]),
    ...(server.repeats === true ? [wholeOf(server, meaning)] : []),
    ...(usage === "own" ? [{ ...envelope, choices: [], usage: counts }] : [])
  ]
  return [...server.comments.map((comment) => comment + server.eol), ...chunks.map((data) => blockOf(server, data))]
}

export const chatRecording = (server: ChatServer, meaning: Meaning): Recording => {
  const done = server.done ? [blockOf(server, "[DONE]")] : []
  const error = errorOf(server, WORDS)
  const failure = blockOf(server, error, server.error_event === true ? "error" : undefined)
  const said = blocksOf(server, { ...meaning, end: meaning.fails === undefined ? meaning.end : "stop" })
  const begun = said.slice(0, server.comments.length + server.opening.length + 1)
  if (meaning.fails === "cut") return { whole: undefined, blocks: begun }
  if (meaning.fails === "error") return { whole: error, blocks: [...begun, failure, ...done] }
  return { whole: wholeOf(server, meaning), blocks: [...said, ...done] }
}
