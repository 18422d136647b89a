/**
 * The metrics of choird. Labels are agents, models, tools and outcomes; never a session, a lane or a text, whose number has no limit. Names
 * that an agent chose are labels up to a limit, and `other` beyond it.
 */
import { Effect, Metric } from "effect"

/** Names of models, and of tools, that metrics distinguish; the rest is one. */
export const TELEMETRY_NAMES_MAX = 200

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })

/** From 10 ms to about three minutes. */
const MILLISECONDS = Metric.exponentialBoundaries({ start: 10, factor: 2, count: 15 })
const histogram = (name: string, description: string) =>
  Metric.histogram(name, { description, boundaries: MILLISECONDS })

/** The short names of the metrics; see the descriptions. */
type MetricName =
  | "epochs"
  | "agent_status"
  | "events"
  | "missed"
  | "lanes"
  | "model_calls"
  | "model_tokens"
  | "model_latency"
  | "tool_calls"
  | "tool_duration"
  | "lock_wait"
  | "skills"
  | "injections"
  | "cancels"
  | "heartbeats"
  | "heartbeat_ms"
  | "approvals"
  | "refusals"
  | "pruned"
  | "snapshots"
  | "orphans"

const METRICS: Readonly<Record<MetricName, Metric.Metric<number, unknown>>> = {
  epochs: counter("choir_agent_epochs_total", "Agent starts, by kind: first or restart"),
  agent_status: counter("choir_agent_status_total", "Times that an agent reached a status"),
  events: counter("choir_events_total", "Acknowledged events"),
  missed: counter(
    "choir_telemetry_missed_events_total",
    "Acknowledged events that telemetry missed because it was too slow"
  ),
  lanes: counter("choir_lane_transitions_total", "Changes of lanes' states"),
  model_calls: counter("choir_model_calls_total", "Model calls, by their outcome"),
  model_tokens: counter("choir_model_tokens_total", "Tokens of model calls, by direction"),
  model_latency: histogram("choir_model_latency_ms", "Milliseconds of a model call"),
  tool_calls: counter("choir_tool_calls_total", "Tool calls, by their outcome"),
  tool_duration: histogram("choir_tool_duration_ms", "Milliseconds of a tool call"),
  lock_wait: histogram("choir_lock_wait_ms", "Milliseconds that a tool call waited for its locks"),
  skills: counter("choir_skill_transitions_total", "Starts, moves and ends of skills"),
  injections: counter("choir_injections_total", "Instructions put into a lane, by their source, or refused"),
  cancels: counter("choir_cancels_total", "Sessions, turns and jobs that were cancelled, by whom"),
  heartbeats: counter("choir_heartbeats_total", "Heartbeats, by answer"),
  heartbeat_ms: histogram("choir_heartbeat_ms", "Milliseconds until a heartbeat was answered"),
  approvals: counter("choir_approvals_total", "Approvals, by their outcome"),
  refusals: counter("choir_refusals_total", "Refused actions, by kind (R77)"),
  pruned: counter("choir_pruned_total", "Rows, sessions, files and folders that retention removed or emptied, by kind"),
  orphans: counter("choir_jobs_orphaned_total", "Jobs that ended without the work summary that their profile requires"),
  snapshots: counter("choir_snapshots_total", "Snapshots of sessions, by their outcome: stored, too_large or failed")
}

const config_version = Metric.gauge("choir_config_version", { description: "The number of the running configuration" })

/** Annotations of a line that is written to the agent's log alone: choird.log is about all of them. */
export const AGENT_LINE = { log: "agent" } as const

type Labels = Readonly<Record<string, string>>

/** Adds to a metric's series of these labels. */
export const count = (metric: MetricName, labels: Labels, value = 1): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(METRICS[metric], labels), value)

/** The configuration of this number runs now. */
export const configurationRuns = (version: number): Effect.Effect<void> =>
  Effect.andThen(
    Metric.update(config_version, version),
    Effect.logInfo(`configuration version ${version} is running`).pipe(Effect.annotateLogs({ config_version: version }))
  )

interface SeenApproval {
  readonly approval_id: string
  readonly agent_id: string
  readonly session_id: string
  readonly lane: string
  readonly request_type: string
}

/** Counts and logs a requested or decided approval: who, which and what, never its content. */
export const approvalSeen = (approval: SeenApproval, action: string, who: string): Effect.Effect<void> => {
  const { agent_id, approval_id, lane, request_type, session_id } = approval
  return Effect.andThen(
    count("approvals", { agent: agent_id, type: request_type, action }),
    Effect.logInfo(`approval ${approval_id}: ${action} by ${who}`).pipe(
      Effect.annotateLogs({ topic: "approval", agent_id, session_id, lane, request_type, approval_id, who })
    )
  )
}

const NAME = /^[\w.:/-]{1,80}$/u

/** A name as a label: itself, as long as names are few. One such memory is shared by what has the same kind of names. */
export const makeLabels = (names_max = TELEMETRY_NAMES_MAX) => {
  const known = new Set<string>()
  return (name: string): string => {
    if (known.has(name)) return name
    if (known.size >= names_max || !NAME.test(name)) return "other"
    known.add(name)
    return name
  }
}
