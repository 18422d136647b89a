/** The plain instructions that the offline model follows, one a line or separated by `;` (E3). */
import { Schema } from "effect"
import { JobName } from "#schema/Ids.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { EVENT_DEPTH_MAX, isDeeperThan } from "#src/shared/text/canonicalJson.ts"

/** Instructions that the offline model takes from one message. */
export const OFFLINE_MODEL_STEPS_MAX = 100

const REPORT_KINDS = ["progress", "plan", "thought_summary", "need_info", "partial_result"] as const

/** One step. `source` is the text it was read from, quoted when the step cannot be followed. */
export type Instruction = { readonly source: string } & (
  | { readonly kind: "read"; readonly path: string }
  | { readonly kind: "write" | "append"; readonly path: string; readonly content: string }
  | { readonly kind: "search"; readonly pattern: string; readonly path?: string }
  | { readonly kind: "run"; readonly command: string }
  | { readonly kind: "call"; readonly tool: string; readonly input: unknown }
  | { readonly kind: "job"; readonly job: string; readonly task: string }
  | { readonly kind: "tell"; readonly job: string; readonly content: string }
  | { readonly kind: "cancel"; readonly job: string }
  | { readonly kind: "jobs" }
  | { readonly kind: "remember"; readonly key: string; readonly text: string }
  | { readonly kind: "recall"; readonly store: "knowledge" | "session"; readonly query: string }
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "report"; readonly event: (typeof REPORT_KINDS)[number]; readonly text: string }
  | { readonly kind: "unusable"; readonly problem: string }
)

/** The instruction in a message, and the lines that are not instructions. */
export interface Instructions {
  readonly steps: ReadonlyArray<Instruction>
  readonly ignored: ReadonlyArray<string>
}

type Parser = (rest: string, source: string) => Instruction | undefined

const unquote = (path: string): string => (/^"[^"]+"$/u.test(path) ? path.slice(1, -1) : path)
const ONE_PATH = /^("[^"]+"|\S+)$/u
const PATH_AND_TEXT = /^("[^"]+"|[^\s:]+):(.*)$/su
const NAME_AND_TEXT = /^([^\s:]+):(.+)$/su

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", "\\": "\\" }
const unescape = (text: string): string =>
  text.replaceAll(/\\([nt\\])/gu, (whole, key: string) => ESCAPES[key] ?? whole)

/** Text files end with a line break, so that lines appended later stand on their own. */
const asLines = (text: string): string => {
  const lines = unescape(text.trim())
  return lines === "" || lines.endsWith("\n") ? lines : `${lines}\n`
}

const file =
  (kind: "write" | "append"): Parser =>
  (rest, source) => {
    const match = PATH_AND_TEXT.exec(rest)
    return match?.[1] === undefined || match[2] === undefined
      ? undefined
      : { source, kind, path: unquote(match[1]), content: asLines(match[2]) }
  }

const search: Parser = (rest, source) => {
  const at = rest.lastIndexOf(" in ")
  const path = at > 0 ? rest.slice(at + 4).trim() : ""
  return ONE_PATH.test(path)
    ? { source, kind: "search", pattern: unquote(rest.slice(0, at).trim()), path: unquote(path) }
    : rest === ""
      ? undefined
      : { source, kind: "search", pattern: unquote(rest) }
}

/** A bare word is taken for a tool only when its input follows, so that "call me later" stays a sentence. */
const call: Parser = (rest, source) => {
  const match = /^([a-z][a-z0-9_.-]{0,63})(?:\s+(\{.*\}))?$/su.exec(rest)
  const tool = match?.[1]
  const json = match?.[2]
  if (tool === undefined || (json === undefined && !/[.-]/u.test(tool))) return undefined
  if (json === undefined) return { source, kind: "call", tool, input: {} }
  const input = parseJson(json)
  if (input === undefined) return { source, kind: "unusable", problem: "the input of the tool is not valid JSON" }
  return isDeeperThan(input, EVENT_DEPTH_MAX)
    ? { source, kind: "unusable", problem: `the input of the tool nests deeper than ${EVENT_DEPTH_MAX} levels` }
    : { source, kind: "call", tool, input }
}

const isJobName = Schema.is(JobName)

const named =
  (make: (job: string, text: string, source: string) => Instruction): Parser =>
  (rest, source) => {
    const match = NAME_AND_TEXT.exec(rest)
    const job = match?.[1]
    const text = match?.[2]?.trim()
    if (job === undefined || text === undefined || text === "") return undefined
    return isJobName(job)
      ? make(job, text, source)
      : { source, kind: "unusable", problem: "a job name is 1 to 40 characters of a-z, 0-9 and -" }
  }

const report: Parser = (rest, source) => {
  const kind = REPORT_KINDS.find((one) => rest.startsWith(`${one}:`))
  const text = kind === undefined ? rest : rest.slice(kind.length + 1).trim()
  return text === "" ? undefined : { source, kind: "report", event: kind ?? "progress", text }
}

/** A key of a fact, so that "remember the milk" stays a sentence. */
const remember: Parser = (rest, source) => {
  const match = /^([a-z0-9_-]+(?:\.[a-z0-9_-]+)*):(.+)$/su.exec(rest)
  const text = match?.[2]?.trim()
  return match?.[1] === undefined || text === undefined || text === ""
    ? undefined
    : { source, kind: "remember", key: match[1], text }
}

const recall: Parser = (rest, source) => {
  const [, place, query = ""] = /^(facts|sessions):(.+)$/su.exec(rest) ?? []
  const store = place === "sessions" ? "session" : "knowledge"
  return place === undefined || query.trim() === "" ? undefined : { source, kind: "recall", store, query: query.trim() }
}

const PARSERS: Readonly<Record<string, Parser>> = {
  read: (rest, source) => (ONE_PATH.test(rest) ? { source, kind: "read", path: unquote(rest) } : undefined),
  write: file("write"),
  append: file("append"),
  search,
  run: (rest, source) => (rest === "" ? undefined : { source, kind: "run", command: rest }),
  call,
  job: named((job, text, source) => ({
    source,
    kind: "job",
    job,
    task: text
      .split(/,[ \t]*then[ \t]/iu)
      .map((step) => step.trim())
      .join("\n")
  })),
  tell: named((job, content, source) => ({ source, kind: "tell", job, content })),
  cancel: (rest, source) => (isJobName(rest) ? { source, kind: "cancel", job: rest } : undefined),
  jobs: (rest, source) => (rest === "" ? { source, kind: "jobs" } : undefined),
  remember,
  recall,
  // npm start asks every model for this sentence; to repeat its words would be no greeting.
  say: (rest, source) =>
    rest === "" || /^hello in one sentence\.?$/iu.test(rest)
      ? undefined
      : { source, kind: "say", text: unescape(rest) },
  report
}

/** The instruction that a piece of text is, or `undefined` for a sentence. A leading list mark is dropped. */
export const parseInstruction = (text: string): Instruction | undefined => {
  const source = text.replace(/^\s*(?:[-*]|\d{1,3}[.)])\s+/u, "").trim()
  const verb = /^[a-z]+(?=\s|$)/iu.exec(source)?.[0]
  if (verb === undefined) return undefined
  const parser = Object.hasOwn(PARSERS, verb.toLowerCase()) ? PARSERS[verb.toLowerCase()] : undefined
  return parser?.(source.slice(verb.length).trim(), source)
}

/** A `;` only separates when an instruction follows it, since texts and shell commands hold `;` too. */
const pieces = (line: string): ReadonlyArray<string> => {
  const found: Array<Array<string>> = []
  for (const part of line.split(";")) {
    const last = found.at(-1)
    if (last === undefined || parseInstruction(part) !== undefined) found.push([part])
    else last.push(part)
  }
  return found.map((parts) => parts.join(";"))
}

/** The line before a message of one of several people. */
const WRITTEN_BY = /^\[Written by [^\]]{1,60}:\]\r?\n/u

/** Reads the instructions of a message, at most {@link OFFLINE_MODEL_STEPS_MAX}; what lies beyond is ignored. */
export const parseInstructions = (text: string): Instructions => {
  const steps: Array<Instruction> = []
  const ignored: Array<string> = []
  for (const piece of text.replace(WRITTEN_BY, "").split(/\r?\n/u).flatMap(pieces)) {
    const step = parseInstruction(piece)
    if (step !== undefined && steps.length < OFFLINE_MODEL_STEPS_MAX) steps.push(step)
    else if (piece.trim() !== "") ignored.push(piece.trim())
  }
  return { steps, ignored }
}
