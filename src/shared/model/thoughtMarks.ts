/**
 * The marks by which servers leave a model's thoughts, or a call, in the text of its answer: one table by family, read wherever text reaches a
 * person. Matching is blind to case; a tag may have attributes and a namespace.
 */

interface Mark {
  readonly hides: "call" | "thought"
  readonly begin: string
  readonly end: string
  /** Whether people write the mark as well, so that one in the middle of a sentence is spoken about. Control tokens are never. */
  readonly isSpoken?: true
}

const THOUGHT_TAG = "(?:[a-z]+:)?(?:ant)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|inner_thoughts?)"
const CALL_TAG =
  "(?:[a-z]+[:_])?(?:tool_calls?|tool[-_]use|function_calls?|function=[^\\s<>]{1,100}|invoke name=[^<>]{1,100})"

/** Harmony names the channel of what follows. Only its channel `final` is for people; one with a recipient is a call. */
const CHANNEL = String.raw`(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*`

const MARKS: Readonly<Record<string, Mark>> = {
  // Qwen, GLM, MiniMax, Hermes and others.
  call_tags: { hides: "call", begin: `<${CALL_TAG}>`, end: String.raw`$(?!)`, isSpoken: true },
  // Mistral, LM Studio, Kimi, DeepSeek, Llama, Gemma, LFM, InternLM.
  call_tokens: {
    hides: "call",
    begin: String.raw`\[TOOL_(?:CALLS|REQUEST)\]|<[|｜]tool[_▁]calls?(?:_section)?[_▁](?:begin|start)[|｜]>|<\|tool_call>|<\|(?:python_tag|action_start)\|>|<[|｜‖]{1,2}DSML[|｜‖]{1,2}`,
    end: String.raw`$(?!)`
  },
  harmony_calls: { hides: "call", begin: String.raw`${CHANNEL}commentary\s+to=`, end: String.raw`$(?!)` },
  // DeepSeek, Qwen, Gemma and Gemini behind OpenAI's API, Seed and others.
  tags: {
    hides: "thought",
    begin: `<${THOUGHT_TAG}(?:\\s[^<>]{0,200})?>`,
    end: `</${THOUGHT_TAG}\\s*>`,
    isSpoken: true
  },
  // Magistral.
  brackets: {
    hides: "thought",
    begin: String.raw`\[THINK(?:ING)?\]`,
    end: String.raw`\[/THINK(?:ING)?\]`,
    isSpoken: true
  },
  // Gemma 4, whose marks are not alike.
  channels: { hides: "thought", begin: String.raw`<\|channel>`, end: String.raw`<channel\|>` },
  // gpt-oss.
  harmony: {
    hides: "thought",
    begin: String.raw`${CHANNEL}(?!\s*final)[a-z]+`,
    end: String.raw`<\|(?:end|return|call)\|>|(?=<\|start\|>|<\|channel\|>)`
  },
  // Cohere, Sky-T1 and others.
  tokens: {
    hides: "thought",
    begin: String.raw`<[|｜](?:begin_of_thought|start_thinking|think(?:ing)?(?:_start)?)[|｜]>`,
    end: String.raw`<[|｜](?:end_of_thought|end_thinking|/?think(?:ing)?(?:_end)?)[|｜]>`
  },
  // Kimi VL; MedGemma.
  triangles: { hides: "thought", begin: "◁think▷", end: "◁/think▷" },
  unused: { hides: "thought", begin: "<unused94>", end: "<unused95>" }
}

/** The header in front of words for a person, and the tokens around them. They are left out. */
const FINAL = String.raw`${CHANNEL}final\b[^<]{0,64}<\|message\|>`
const FRAME = String.raw`<\|(?:start|end|return|message)\|>(?:assistant\b)?|<\|(?:im_end|eot_id|endoftext|end_of_text)\|>|<｜(?:begin|end)▁of▁sentence｜>`

/** Characters of the longest mark that is looked for. */
export const MARK_CHARS_MAX = 256

const families = Object.entries(MARKS)
const alternatives = (of: "begin" | "end") => families.map(([family, mark]) => `(?<${family}>${mark[of]})`).join("|")
const BEGIN = new RegExp(alternatives("begin"), "iuy")
const END = new RegExp(
  `(?<final>${FINAL})|${families.flatMap(([family, { end, hides }]) => (hides === "thought" && family !== "harmony" ? [`(?<${family}>${end})`] : [])).join("|")}`,
  "iuy"
)
const FRAMES = new RegExp(FRAME, "iuy")
const ENDS: ReadonlyMap<string, RegExp> = new Map(families.map(([family, { end }]) => [family, new RegExp(end, "giu")]))

/** A mark that begins at a place of a text. */
export interface FoundMark {
  readonly kind: "begin" | "end" | "frame"
  readonly chars: number
  readonly hides: Mark["hides"]
  readonly isSpoken: boolean
  /** The end of what it begins. */
  readonly end: RegExp
}

const NEVER = /$(?!)/gu

const at = (pattern: RegExp, text: string, index: number): RegExpExecArray | null => {
  pattern.lastIndex = index
  return pattern.exec(text)
}

const found = (kind: FoundMark["kind"], match: RegExpExecArray): FoundMark => {
  const family = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined)?.[0] ?? ""
  const mark = MARKS[family]
  return {
    kind,
    chars: match[0].length,
    hides: mark?.hides ?? "thought",
    isSpoken: mark?.isSpoken === true,
    end: ENDS.get(family) ?? NEVER
  }
}

/** The mark at a place of a text. */
export const markAt = (text: string, index: number): FoundMark | undefined => {
  const end = at(END, text, index)
  if (end !== null) return found("end", end)
  const begin = at(BEGIN, text, index)
  if (begin !== null) return found("begin", begin)
  const frame = at(FRAMES, text, index)
  return frame === null ? undefined : found("frame", frame)
}

/** A character with which marks begin. */
export const MARK_BEGIN = /[<[◁]/u

const BRACKETS = ["[think]", "[thinking]", "[/think]", "[/thinking]", "[tool_calls]", "[tool_request]"]
const OPEN_TAG = /^<(?:$|[/|｜‖a-z][^<>\n]*$)/iu
const OPEN_HEADER =
  /^<\|(?:start|channel)\|>[^<]{0,80}(?:<[^<>]{0,12})?(?:<\|channel\|>[^<]{0,64})?(?:<[^<>]{0,12})?$/iu

/** Whether the end of a text may be the beginning of a mark whose rest has not come. */
export const isBegunMark = (end: string): boolean => {
  if (end.length > MARK_CHARS_MAX) return false
  if (end.startsWith("[")) return BRACKETS.some((mark) => mark.startsWith(end.toLowerCase()))
  if (end.startsWith("◁")) return "◁/think▷".startsWith(end) || "◁think▷".startsWith(end)
  return OPEN_TAG.test(end) || OPEN_HEADER.test(end)
}
