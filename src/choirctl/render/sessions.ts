/** Sessions, their events and their proof for people. */
import { type ChoirEvent, type EventOf, isKnownEvent } from "#schema/Event.ts"
import { type CoreSummary, type SessionSummary, type SignalSummary, type Verification } from "#schema/SessionsApi.ts"
import type { RenewedSession, SessionDetail } from "#schema/SessionsApi.ts"
import type { SessionStatus } from "#schema/SessionStatus.ts"
import type { PromptContext } from "#schema/PromptContext.ts"
import { ago, paint, type Paint, safeLine, safeText, table } from "#src/choirctl/terminal/text.ts"
import { contextLabel, contextLine, contextShares } from "#src/shared/session/contextShares.ts"
import { jobLines } from "#src/shared/session/jobText.ts"
import { plural } from "#src/shared/text/counts.ts"
import { bindingEntries } from "./agents.ts"
import type { PrintedLine } from "./printedEvent.ts"

const STYLES: Readonly<Record<SessionStatus, Paint>> = {
  active: "green",
  stopped: "dim",
  crashed: "red",
  closed: "dim"
}

export const sessionTable = (rows: ReadonlyArray<SessionSummary>, now_ms: number, color: boolean): string =>
  rows.length === 0
    ? "no sessions"
    : table(
        ["SESSION", "AGENT", "STATUS", "STARTED", "ENDED", "EVENTS"],
        rows.map(({ agent_id, ended_at, last_rev, session_id, started_at, status }) => [
          session_id,
          agent_id,
          { text: status, style: STYLES[status] },
          ago(started_at, now_ms),
          ago(ended_at, now_ms),
          String(last_rev)
        ]),
        color
      )

const listed = (title: string, entries: ReadonlyArray<string>): ReadonlyArray<string> =>
  entries.length === 0 ? [] : [`${title}:`, ...entries.map((entry) => `  - ${safeLine(entry)}`)]

/** One session; the summary is the agent's own text. */
export const sessionText = (detail: SessionDetail, now_ms: number, color: boolean): string => {
  const { agent_id, ended_at, epoch, frozen_reason, head, image_version, last_rev, newer, resource_bindings, summary } =
    detail
  const bindings = bindingEntries(resource_bindings).map(([kind, names]) => `${kind}=${names.join(",")}`)
  return [
    `session   ${detail.session_id}`,
    `agent     ${agent_id}, image ${image_version}, epoch ${epoch}`,
    `status    ${paint(color, STYLES[detail.status], detail.status)}`,
    ...(frozen_reason === null ? [] : [`frozen    ${safeLine(frozen_reason)}`]),
    ...(newer === undefined
      ? []
      : [
          `newer     cannot run: ${safeLine(newer.event_type)} at revision ${newer.rev} was written by ${newer.choird_version === null ? "a later choird" : `choird ${safeLine(newer.choird_version)}`}`
        ]),
    `started   ${detail.started_at} (${ago(detail.started_at, now_ms)})`,
    `ended     ${ended_at === null ? "-" : `${ended_at} (${ago(ended_at, now_ms)})`}`,
    `events    ${last_rev}, head ${head}`,
    `bindings  ${bindings.join(" ")}`,
    ...(summary === null
      ? ["summary   none"]
      : [
          `summary   ${safeLine(summary.title)}`,
          "",
          safeText(summary.summary),
          ...listed("decisions", summary.decisions),
          ...listed("open points", summary.open_points),
          ...listed("facts", summary.facts)
        ])
  ].join("\n")
}

/** The running jobs, each with its task, its plan and its work. */
export const coreList = (rows: ReadonlyArray<CoreSummary>): string =>
  rows.length === 0
    ? "no core jobs are running; choirctl session jobs lists those that ended"
    : rows.map((row) => jobLines(row, undefined).map(safeText).join("\n")).join("\n\n")

/** A prompt part by part, and the shares of its kinds of parts at the end, where a person looks first. */
export const contextText = (context: PromptContext, color: boolean): string =>
  [
    ...context.parts.map(
      ({ kind, text, tokens }) => `${paint(color, "bold", `${kind}, ${tokens} tokens`)}\n${safeText(text)}\n`
    ),
    safeLine(contextLine(context)),
    ...contextLabel(context).map((line) => safeLine(line)),
    table(
      ["PART", "COUNT", "TOKENS"],
      contextShares(context).map(({ name, parts, tokens }) => [name, String(parts), String(tokens)]),
      color
    )
  ].join("\n")

/** The outcome of a signal, with the event that completed it if that was waited for. */
const signalLine = ({ refused, rev, signal_id }: SignalSummary, asked: string, done: string): string => {
  if (rev === null) return `${asked} (signal ${signal_id})`
  return refused === null ? `${done}, revision ${rev}` : `not done, revision ${rev}: ${safeLine(refused)}`
}

export const cancelLine = (signal: SignalSummary & { readonly job_name: string }): string =>
  signalLine(signal, `${signal.job_name} is being cancelled`, `${signal.job_name} was cancelled`)

export const skillCancelLine = (signal: SignalSummary): string =>
  signalLine(signal, "the skill is being cancelled", "the skill was cancelled")

export const stopLine = (signal: SignalSummary): string =>
  signalLine(signal, "the turn is being stopped", "the turn was stopped")

export const newSessionLine = ({ closed, session_id, ...signal }: RenewedSession): string =>
  signalLine(
    signal,
    "a new conversation begins once the open turn has its answer",
    session_id === null ? `${closed} is closed` : `${closed} is closed; the new session is ${session_id}`
  )

export const injectLine = (signal: SignalSummary): string =>
  signalLine(signal, "edge will receive it at its next safe point", "edge received it")

export const answerLine = (signal: SignalSummary): string =>
  signalLine(signal, "the job will receive the answer at its next safe point", "the job received the answer")

export const compactLine = (signal: SignalSummary): string =>
  signalLine(signal, "compaction was requested", "the working memory was compacted")

/** The parts that a verification could not check: reduced payloads, and events that only a later Choir folds. */
const proofRemarks = ({ forgotten, newer }: Verification): string =>
  [
    forgotten === undefined ? "" : `\nthe text of ${plural(forgotten, "event")} was forgotten, as later events record`,
    newer === undefined
      ? ""
      : `\nevents from revision ${newer.rev} on (${safeLine(newer.event_type)}, version ${newer.v}) were written by a later Choir: their chain is valid, but what they do was not checked`
  ].join("")

export const verificationText = (verification: Verification, color: boolean): string => {
  const { events, head, ok, problem } = verification
  return ok
    ? `${paint(color, "green", "verified")} ${plural(events, "event")}, head ${head}${proofRemarks(verification)}`
    : `${paint(color, "red", "not valid")}${problem === undefined ? "" : ` at revision ${problem.rev}: ${safeLine(problem.reason)}`}`
}

const call = (payload: { readonly call_id: string }, rest: string) => `${payload.call_id} ${rest}`

/** The beginning of a call: its locks, and the person or the standing grant that allowed it. */
const begun = ({ approval_id, grant_id, locks }: EventOf<"ToolCallCommitted">["payload"]): string =>
  [
    plural(locks.length, "lock"),
    ...(approval_id === undefined ? [] : [`approval ${approval_id}`]),
    ...(grant_id === undefined ? [] : [`by the standing grant ${grant_id}`])
  ].join(", ")

const injected = ({ content, refused, source, target }: EventOf<"InjectedInstruction">["payload"]) =>
  [`${source} to ${target}`, ...(refused === undefined ? [] : [`refused: ${refused}`]), content]
    .filter((part) => part !== "")
    .join(": ")

/** Where a text came from, if it is from outside. */
const label = (sources: ReadonlyArray<string> = [], untrusted = sources.length > 0): string =>
  untrusted ? ` [from ${sources.length === 0 ? "outside" : sources.join(", ")}]` : ""

/** How a call ended, how sure that is where it acted outside, and where its text came from. */
const ended = ({ acted, sources, status, summary, untrusted }: EventOf<"ToolResultCommitted">["payload"]): string =>
  `${[status, acted].filter((word) => word !== undefined).join(", ")}${label(sources, untrusted)}: ${summary}`

/** A payload in one phrase. */
const summary = (event: ChoirEvent): string => {
  switch (event.event_type) {
    case "UserMsg":
      return `${event.payload.forwarded === true ? "[forwarded] " : ""}${event.payload.text}`
    case "ModelOutput": {
      const { error, purpose, text, tool_calls } = event.payload
      const calls = tool_calls.map(({ name }) => name).join(", ")
      return [purpose, error?.message, text, calls === "" ? undefined : `calls ${calls}`].filter(Boolean).join(": ")
    }
    case "ToolCallRequested":
      return call(event.payload, `${event.payload.tool} ${JSON.stringify(event.payload.input)}`)
    case "ToolCallCommitted":
      return call(event.payload, begun(event.payload))
    case "ToolResultCommitted":
      return call(event.payload, ended(event.payload))
    case "MemoryWriteCommitted":
      return `${event.payload.action} ${event.payload.store} ${event.payload.key ?? ""}`
    case "CoreStarted":
      return `${event.payload.job_name} with ${event.payload.model}`
    case "CoreStopped":
      return `${event.payload.job_name} ${event.payload.outcome}${label(event.payload.sources)}: ${event.payload.summary}`
    case "InjectedInstruction":
      return injected(event.payload)
    case "Cancelled":
      return `${event.payload.target}${event.payload.turn === undefined ? "" : `, turn ${event.payload.turn}`} by ${event.payload.by}: ${event.payload.reason}`
    case "SkillTransitionCommitted":
      return `${event.payload.skill}: ${event.payload.from} to ${event.payload.to} on ${event.payload.on}`
    case "AgentMessage":
      return `${event.payload.kind}: ${event.payload.text ?? event.payload.file?.as ?? ""} ${event.payload.facts ?? ""}`
    case "CompactionCommitted":
      return `up to revision ${event.payload.boundary_rev}`
  }
}

const SUMMARY_CHARS = 160
const TYPE_CHARS = 24
const LANE_CHARS = 14

const clipped = (text: string) => (text.length <= SUMMARY_CHARS ? text : `${text.slice(0, SUMMARY_CHARS - 1)}…`)

/** One aligned line of an event. */
export const eventLine = (event: PrintedLine, color: boolean): string => {
  const rev = String(event.rev).padStart(6)
  const time = event.created_at.slice("2026-01-01T".length, -1)
  const [lane, type] = [safeLine(event.lane).padEnd(LANE_CHARS), safeLine(event.event_type).padEnd(TYPE_CHARS)]
  const head = `${rev}  ${safeLine(time)}  ${lane}  ${type}`
  return `${paint(color, "dim", head)}  ${clipped(safeLine(isKnownEvent(event) ? summary(event) : "written by a later Choir"))}`.trimEnd()
}
