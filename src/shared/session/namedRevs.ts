/**
 * The revisions whose events a state cannot do without: it names them, and what comes next is read from them. The tail of a recovery
 * starts at the oldest of them (docs/protocol.md, Snapshots).
 */
import type { CoreLane, EdgeLane, LaneMemory, PendingReport, SessionState } from "./State.ts"

const ofCalls = ({ calls }: Pick<LaneMemory, "calls">): ReadonlyArray<number> =>
  calls.flatMap(({ output_rev }) => output_rev)

/** A step of a skill is shown its input and its STATE, and its result needs the verdict on it. */
const ofSkill = ({ skill }: LaneMemory): ReadonlyArray<number> =>
  skill === undefined ? [] : [skill.started_rev, skill.judged_rev, ...skill.fields.map(({ rev }) => rev)]

const ofReports = (reports: ReadonlyArray<PendingReport>): ReadonlyArray<number> => reports.map(({ rev }) => rev)

/** A turn's message or report, its newest output and its open calls. */
const ofTurn = ({
  calls,
  output_rev,
  turn
}: Pick<EdgeLane, "calls" | "output_rev" | "turn">): ReadonlyArray<number> => [
  ...ofCalls({ calls }),
  output_rev,
  ...(turn === undefined ? [] : [turn.rev, ...(turn.kind === "report" ? [turn.report.rev] : [])])
]

/** The jobs that run and those that can be resumed. */
const jobsOf = ({ cores, resumable }: SessionState): ReadonlyArray<CoreLane> => [
  ...cores.values(),
  ...[...resumable.values()].map(({ core }) => core)
]

/** Without the windows, which only prompts read; see {@link windowsOf}. */
export const namedRevs = (state: SessionState): ReadonlyArray<number> =>
  [
    ...ofTurn(state.edge),
    ...(state.edge.parked === undefined ? [] : ofTurn(state.edge.parked)),
    ...ofSkill(state.edge),
    ...ofReports(state.reports),
    ...jobsOf(state).flatMap((core) => [
      ...ofCalls(core),
      ...ofSkill(core),
      core.skill_end_rev,
      core.started_rev,
      core.output.rev,
      core.report_rev,
      core.plan?.rev ?? 0,
      core.writeback_rev,
      core.question?.rev ?? 0
    ])
  ].filter((rev) => rev > 0)

/** The window of each lane, oldest first. */
export const windowsOf = (state: SessionState): ReadonlyArray<ReadonlyArray<number>> => [
  state.edge.window,
  ...jobsOf(state).map(({ window }) => window)
]

/**
 * From which revision on a recovery needs the events: the oldest one that the state names, its windows included, so that the next
 * prompts show what they would have shown; the one after the state when it names none.
 */
export const oldestNamed = (state: SessionState): number =>
  [...namedRevs(state), ...windowsOf(state).flatMap((window) => window.slice(0, 1))].reduce(
    (oldest, rev) => Math.min(oldest, rev),
    state.rev + 1
  )
