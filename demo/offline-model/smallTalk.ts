/** The offline model's answers when there is nothing to do. It never poses as a language model. */
import { Predicate } from "effect"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { clip, OFFLINE_MODEL_SUMMARY_CHARS_MAX } from "./ToolResult.ts"

const HELP = `I am the offline model: a small program that follows plain instructions, not a language model. \
Give me one instruction a line, or several separated by ";":
read PATH
write PATH: TEXT (\\n starts a new line)
append PATH: TEXT
search PATTERN in PATH
run COMMAND
call TOOL {"key": "value"}
job NAME: STEP, then STEP (a core job that does the steps in the background)
tell NAME: TEXT
cancel NAME
jobs
remember KEY: TEXT (a fact for later sessions)
recall facts: WORDS, or recall sessions: WORDS
report TEXT (inside a core job)
say TEXT
To talk freely, add a real model: choirctl model add.`

const SENTENCE = `I am the offline model, so I cannot talk about that: I only follow plain instructions, such as \
"read notes.txt" or "run date". Say "help" to see them all. To talk freely, add a real model: choirctl model add.`

const GREETING = `Hello! I am the offline model, a small program that follows plain instructions. Say "help" to see them.`

const SUM = /^(?:what(?: is|'s) |calculate )?(-?\d{1,9}) ?([-+*/x]) ?(-?\d{1,9})\??$/iu

const compute = (left: number, operator: string, right: number): string => {
  switch (operator) {
    case "+":
      return String(left + right)
    case "-":
      return String(left - right)
    case "/":
      return right === 0 ? "undefined" : String(left / right)
    default:
      return String(left * right)
  }
}

/** The answer to a greeting, a sum or a question about the model; undefined for any other message. */
const plainAnswer = (message: string): string | undefined => {
  const text = message.trim()
  const sum = SUM.exec(text)
  if (sum?.[1] !== undefined && sum[2] !== undefined && sum[3] !== undefined) {
    return `${sum[1]} ${sum[2]} ${sum[3]} is ${compute(Number(sum[1]), sum[2], Number(sum[3]))}.`
  }
  if (/^(?:help|what can you do|what are you|who are you)\b/iu.test(text)) return HELP
  return /^(?:hi|hello|hey|say hello in one sentence|good (?:morning|evening|afternoon))\b/iu.test(text)
    ? GREETING
    : undefined
}

/** The answer to a sentence for which the prompt shows something of long-term memory. */
const memorySentence = (lines: ReadonlyArray<string>): string =>
  clip(`I remember:\n${lines.join("\n")}`, OFFLINE_MODEL_SUMMARY_CHARS_MAX)

/** The answer to a message that holds no instruction; else from what memory showed for it. */
export const smallTalk = (message: string, recalled: ReadonlyArray<string> = []): string =>
  plainAnswer(message) ?? (recalled.length > 0 ? memorySentence(recalled) : SENTENCE)

/** The first of `keys` that a JSON report, or a text of `key: value` lines, has a value for. */
const reportField = (text: string, json: unknown, keys: ReadonlyArray<string>): string | undefined => {
  for (const key of keys) {
    const value = Predicate.hasProperty(json, key) ? json[key] : undefined
    if (value !== undefined && value !== null) return typeof value === "string" ? value : JSON.stringify(value)
    const line = new RegExp(`^[ \\t]*${key}[ \\t]*[:=](.*)$`, "imu").exec(text)?.[1]?.trim()
    if (line !== undefined && line !== "") return line
  }
  return undefined
}

/** One sentence on a job that stopped or asks something, from a report of the control plane. */
export const reportSentence = (report: string): string => {
  const json = parseJson(report)
  if (Array.isArray(json)) return json.map((one) => reportSentence(JSON.stringify(one))).join("\n")
  const job = reportField(report, json, ["job_name", "job", "name"])
  const outcome = reportField(report, json, ["outcome", "status"]) ?? "completed"
  const summary = reportField(report, json, ["summary", "result", "text"])
  if (job === undefined) return clip(report, OFFLINE_MODEL_SUMMARY_CHARS_MAX) || "A core job has stopped."
  const question = reportField(report, json, ["asks"])
  if (question !== undefined) return clip(`${job} asks: ${question}`, OFFLINE_MODEL_SUMMARY_CHARS_MAX)
  const verdict = /^(?:completed|done|success)$/iu.test(outcome) ? "is done" : `stopped with outcome ${outcome}`
  return clip(`${job} ${verdict}${summary === undefined ? "." : `: ${summary}`}`, OFFLINE_MODEL_SUMMARY_CHARS_MAX)
}
