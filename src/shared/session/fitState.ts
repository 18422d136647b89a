/**
 * The one limit of a session's state as a whole. Where its lanes remember more than fits together, the oldest of it goes, so that a state always
 * fits a snapshot and INIT_HELLO's reply. It depends on the events alone: agent and choird forget the same.
 */
import { Result } from "effect"
import { NAMED_SOURCES, type Source } from "#schema/Source.ts"
import { openOutputs } from "./compactWindow.ts"
import type { Folded } from "./lanes.ts"
import { jsonBytes, laneBytes, stateBytes } from "./stateBytes.ts"
import type { CoreLane, EdgeLane, JobWork, OpenCall, ReferenceSummary, SessionState } from "./State.ts"
import { lastChars } from "./textEnds.ts"

/** Bytes of a state as JSON; snapshots.ts has room for them. */
export const STATE_BYTES_MAX = 896 * 1024
/** A state above the limit is brought below this, so that the next events fit without another search for what may go. */
const FITTED_BYTES_MAX = (STATE_BYTES_MAX / 8) * 7
/** How much a lane may remember of one kind, in bytes, tried one after the other. */
const SHARES = [64, 32, 16, 8, 4, 2, 1, 0.5, 0.25].map((kib) => kib * 1024)
/** Of a window this newest part stays in any case: the next prompts are made of it. */
const WINDOW_BYTES_MIN = 1024

/** The newest of a list within a share, the same list where all of it is. */
const newest = <A>(list: ReadonlyArray<A>, share: number): ReadonlyArray<A> => {
  if (jsonBytes(list) <= share) return list
  let left = share
  const from = list.findLastIndex((entry) => {
    left -= jsonBytes(entry) + 1
    return left < 0
  })
  return list.slice(from + 1)
}

/** The same of what is kept from its beginning on. */
const first = <A>(list: ReadonlyArray<A>, share: number): ReadonlyArray<A> =>
  newest(list.toReversed(), share).toReversed()

/** By characters of up to three bytes: to count a text again and again would take longer than all else. */
const newestText = (text: string, share: number): string =>
  text.length <= share / 3 ? text : lastChars(text, Math.floor(share / 3))

/** Pinned facts give way last. */
const newestFacts = (facts: ReferenceSummary["facts"], share: number): ReferenceSummary["facts"] => {
  if (jsonBytes(facts) <= share) return facts
  const pinned = newest(
    facts.filter((fact) => fact.pinned === true),
    share
  )
  const others = newest(
    facts.filter((fact) => fact.pinned !== true),
    share - jsonBytes(pinned)
  )
  const kept = new Set([...pinned, ...others])
  return facts.filter((fact) => kept.has(fact))
}

/** With some of its parts replaced; the same where none of them is another. */
const changed = <A extends object>(value: A, parts: Partial<A>): A =>
  Object.entries(parts).every(([key, part]) => value[key as keyof A] === part) ? value : { ...value, ...parts }

type Forget = <L extends EdgeLane | CoreLane>(lane: L, share: number) => L

const forgetFiles: Forget = (lane, share) =>
  jsonBytes(lane.seen) <= share ? lane : { ...lane, seen: new Map(newest([...lane.seen], share)) }

const leanWork = (work: JobWork, share: number): JobWork =>
  jsonBytes(work.changed) <= share ? work : { ...work, changed: first(work.changed, share) }

const forgetMemory: Forget = (lane, share) => {
  if (laneBytes(lane) <= share) return lane
  const { environment, repetitions, skill, summary, written } = lane
  const lean = {
    environment: newestText(environment, share),
    repetitions: newest(repetitions, share),
    skill: skill && changed(skill, { fields: newest(skill.fields, share) }),
    summary: changed(summary, {
      summary: newestText(summary.summary, share),
      facts: newestFacts(summary.facts, share),
      files: newest(summary.files, share),
      referenced_events: newest(summary.referenced_events, share),
      referenced_sessions: newest(summary.referenced_sessions, share),
      words: newest(summary.words, share)
    }),
    written: newest(written, share)
  }
  const work = "work" in lane ? { work: leanWork(lane.work, share) } : {}
  return changed<EdgeLane | CoreLane>(lane, { ...lean, ...work }) as typeof lane
}

/** Outputs whose calls are open stay, or no compaction could pass them. */
const forgetWindow: Forget = (lane, share) => {
  const kept = new Set([...newest(lane.window, share), ...openOutputs(lane)])
  const window = lane.window.filter((rev) => kept.has(rev))
  return window.length === lane.window.length ? lane : { ...lane, window }
}

/** The kinds of sources without their names, so that however little room there is no kind is hidden. */
const kindsOf = (sources: ReadonlyArray<Source>): ReadonlyArray<Source> => [
  ...new Set(
    sources.map((source) => {
      const kind = NAMED_SOURCES.find((named) => source.startsWith(`${named}:`))
      return kind === undefined ? source : (`${kind}:*` as const)
    })
  )
]

const kindsOfCall = (call: OpenCall): OpenCall =>
  call.sources === undefined ? call : { ...call, sources: kindsOf(call.sources) }

const forgetNames: Forget = (lane) => {
  const lean = { ...lane, calls: lane.calls.map(kindsOfCall), sources: kindsOf(lane.sources) }
  if (!("parked" in lean) || lean.parked === undefined) return lean
  return { ...lean, parked: { ...lean.parked, calls: lean.parked.calls.map(kindsOfCall) } }
}

const inJobs = (state: SessionState, forget: Forget, share: number): SessionState => ({
  ...state,
  cores: new Map([...state.cores].map(([name, core]) => [name, forget(core, share)])),
  resumable: new Map(
    [...state.resumable].map(([name, kept]) => [name, changed(kept, { core: forget(kept.core, share) })])
  )
})

const inEdge = (state: SessionState, forget: Forget, share: number): SessionState => ({
  ...state,
  edge: forget(state.edge, share)
})

const inAll = (state: SessionState, forget: Forget, share: number): SessionState =>
  inEdge(inJobs(state, forget, share), forget, share)

type Step = (state: SessionState) => SessionState

/**
 * In the order in which it may be missed: a file that is forgotten only has to be read again before it is written, edge speaks to people, and
 * what leaves a window before a compaction is in no summary.
 */
const STEPS: ReadonlyArray<Step> = [
  ...SHARES.map(
    (share): Step =>
      (state) =>
        inAll(state, forgetFiles, share)
  ),
  ...SHARES.map(
    (share): Step =>
      (state) =>
        inJobs(state, forgetMemory, share)
  ),
  ...SHARES.map(
    (share): Step =>
      (state) =>
        inEdge(state, forgetMemory, share)
  ),
  (state) => inAll(state, forgetWindow, WINDOW_BYTES_MIN),
  (state) => ({
    ...inAll(state, forgetNames, 0),
    past_sources: kindsOf(state.past_sources),
    workspace_sources: kindsOf(state.workspace_sources),
    workspace_files: new Map([...state.workspace_files].map(([path, sources]) => [path, kindsOf(sources)]))
  })
]

/** A state within the limit. Refused is only one whose open calls and ids alone are too many: hundreds of calls with the longest names at once. */
export const fitState = (state: SessionState): Folded => {
  if (stateBytes(state) <= STATE_BYTES_MAX) return Result.succeed(state)
  let lean = state
  for (const step of STEPS) {
    lean = step(lean)
    if (stateBytes(lean) <= FITTED_BYTES_MAX) return Result.succeed(lean)
  }
  return stateBytes(lean) <= STATE_BYTES_MAX
    ? Result.succeed(lean)
    : Result.fail(`the session's state would have more than ${STATE_BYTES_MAX} bytes`)
}
