/** A conversation for people. */
import type { CoreReport } from "#schema/Core.ts"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { paint, safeLine, safeText } from "#src/choirctl/terminal/text.ts"

type Message = Pick<Extract<ChatEvent, { readonly type: "message" }>, "kind" | "text">

/** Whether a message is the end of the turn that it answers, with an answer or with what is in its place. */
export const endsTurn = ({ kind }: Pick<Message, "kind">): boolean =>
  kind === "reply" || kind === "error" || kind === "outage" || kind === "stopped"

/** The words in front of a report on a job. */
export const reportLabel = (color: boolean): string => `${paint(color, "cyan", "report:")} `

/** A message as it is read: a reply says nothing of itself, everything else says what it is. */
export const messageText = ({ kind, text }: Message, color: boolean): string => {
  const shown = safeText(text)
  switch (kind) {
    case "reply":
    case "stopped":
      return shown
    case "report":
      return `${reportLabel(color)}${shown}`
    case "refusal":
      return `${paint(color, "red", "refused:")} ${shown}`
    case "error":
    case "outage":
      return `${paint(color, "red", "error:")} ${shown}`
    case "notice":
      return paint(color, "dim", `notice: ${shown}`)
  }
}

/** The keys, as `/help` shows them. */
export const KEYS_HELP = "Ctrl-C stops what the agent does for you; Ctrl-D or /quit leaves the chat."

/** The question above an answer that was asked for somewhere else; nothing above what ends no turn, or continues. */
export const questionText = ({
  kind,
  part,
  question
}: Pick<Extract<ChatEvent, { readonly type: "message" }>, "kind" | "part" | "question">): string => {
  const line = safeLine(question ?? "").trim()
  return line === "" || part > 0 || !endsTurn({ kind }) ? "" : `you asked: ${line}`
}

/** The agent's state between two messages. */
export interface ChatState {
  readonly up: boolean
  readonly status: string
  readonly edge: string
  /** Whether edge does nothing until a person has decided. */
  readonly waits: boolean
  /** Whether edge makes a report on a job, or is about to. */
  readonly reporting: boolean
  /** The tool that edge runs. */
  readonly tool?: string | undefined
  /** How long edge has been doing what it does. */
  readonly seconds?: number
  readonly cores: ReadonlyArray<string>
  readonly reports: ReadonlyArray<{ readonly job_name: string; readonly report: CoreReport }>
}

/** The states of edge, in a person's words. */
const LANE_WORDS: Readonly<Record<string, string>> = {
  EDGE_CONTEXT_READY: "thinking",
  EDGE_REASONING: "thinking",
  EDGE_WAITING_TOOL: "running a tool",
  EDGE_FINALIZING: "finishing"
}

/** The states whose words say more than that edge reports. */
const USES_TOOL: ReadonlySet<string> = new Set(["EDGE_WAITING_TOOL"])

/** A job's name, and how far it says it is. */
const jobWords = (name: string, { reports }: ChatState): string => {
  const report = reports.find(({ job_name }) => job_name === name)?.report
  const far = [report?.phase, report?.percent === undefined ? undefined : `${Math.round(report.percent)}%`]
  return [name, ...far.filter((part) => part !== undefined)].join(" ")
}

/** Seconds after which a prompt says how long something has been going on. */
const LONG_S = 5

const lasting = (seconds: number): string =>
  seconds < LONG_S ? "" : seconds < 60 ? ` ${seconds} s` : ` ${Math.floor(seconds / 60)} min`

/** The activity of edge, in a person's words; undefined where it does nothing. */
export const laneWords = ({ edge, reporting, tool, waits }: ChatState): string | undefined => {
  if (waits) return "waiting for your approval"
  if (USES_TOOL.has(edge)) return tool === undefined ? LANE_WORDS[edge] : `running ${tool.replace(/^choir-/u, "")}`
  return reporting ? "reporting" : LANE_WORDS[edge]
}

const doing = (state: ChatState): string => {
  const { cores, reports, seconds = 0, status, up } = state
  if (!up) return "choird is not reachable"
  if (status !== "running") return status
  const count = `${cores.length} ${cores.length === 1 ? "job" : "jobs"}`
  const told = reports.length === 0 ? count : `${count}: ${cores.map((name) => jobWords(name, state)).join("; ")}`
  const jobs = cores.length === 0 ? [] : [told]
  const lane = laneWords(state)
  return [...(lane === undefined ? [] : [`${lane}${lasting(seconds)}`]), ...jobs].join(", ")
}

/** The agent's name and, while it is not idle, what it does. */
export const promptText = (agent_id: string, state: ChatState, color: boolean): string => {
  const now = safeLine(doing(state))
  return `${paint(color, "bold", agent_id)}${now === "" ? "" : paint(color, "dim", ` (${now})`)}> `
}
