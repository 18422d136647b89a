/**
 * Rehearsals: a proposed skill or tool and today's on the same recorded runs, in trials that act nowhere, so that a person who decides sees what
 * would become worse. The person decides all the same.
 */
import { basename } from "node:path"
import { Context, Effect, Layer, Option, Redacted, Result, type Schema, Stream } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Config } from "#schema/Config.ts"
import { PROGRAM_CALLS_MAX, type TriedTool } from "#schema/ContainedTrial.ts"
import type { AgentId, SecretName, SessionId } from "#schema/Ids.ts"
import { SkillName, type SkillSpec } from "#schema/Skill.ts"
import { schemaOf } from "#schema/SkillContract.ts"
import type { ToolManifest } from "#schema/Tool.ts"
import type { Rehearsal, RehearsedRun, TrialOutcome } from "#schema/Trial.ts"
import { agentConfig } from "#src/choird/config/agentShare.ts"
import { withOfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import type { ImagePlan } from "#src/choird/repos/Merge.ts"
import { isHeld } from "#src/choird/repos/Tree.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { readPinnedSchema } from "#src/shared/image/pinnedSchemas.ts"
import { readSkill, SCHEMAS_FOLDER } from "#src/shared/image/skillFile.ts"
import { readToolManifest } from "#src/shared/image/toolManifest.ts"
import { comparePrograms } from "./comparePrograms.ts"
import { type Comparison, compareTrials, withRecord } from "./compareTrials.ts"
import { findRuns, readRun, type RecordedRun, type RunPlace } from "./recordedRuns.ts"
import { findToolSessions, type RecordedResult, type ToolSession, worseForCalls } from "./recordedTools.ts"
import { TRIAL_MS_MAX, SkillReplays } from "./SkillReplays.ts"

/** Time within a trial's limit that is left for what is not its job's. */
const TRIAL_MARGIN_MS = 30_000
/** Tokens of one trial, of a model whose price is unknown too. */
const TRIAL_TOKENS_MAX = 500_000

/** The parts of an image that a trial needs. */
export interface TrialImage {
  readonly skills: ReadonlyArray<SkillSpec>
  readonly manifests: ReadonlyArray<ToolManifest>
}

/** A program of a tool, run on inputs with an outcome for each. */
type RunProgram = (
  inputs: ReadonlyArray<Schema.Json>
) => Effect.Effect<ReadonlyArray<TriedTool>, { readonly message: string }>

/** The programs of a tool, or why the proposed one does not run. */
export type Programs = Result.Result<{ readonly today: RunProgram; readonly proposed: RunProgram }, string>

export interface RehearsalSubject {
  readonly agent_id: AgentId
  /** The session that proposes; its own runs do not count. */
  readonly session_id: SessionId
  readonly kind: "skill" | "tool"
  /** The skill or the tool. */
  readonly name: string
  readonly today: TrialImage
  readonly proposed: TrialImage
  /** Of a tool. */
  readonly programs?: Programs
}

type Place = Pick<RehearsalSubject, "agent_id" | "kind" | "name" | "session_id">

/** Why there is nothing to compare. */
export const nothingRecorded = (kind: RehearsalSubject["kind"]): string =>
  `this agent has no recorded ${kind === "tool" ? "call" : "run"} of it`

/** Runs a proposed skill or tool and today's on the same recorded runs, and reports where they differ. */
export class Rehearsals extends Context.Service<
  Rehearsals,
  {
    /** Whether there is a recorded run of the skill, or call of the tool, to rehearse it on. */
    isPossible(subject: Place): Effect.Effect<boolean, DatabaseAway>
    /** Rehearses on at most `skills.rehearsal.runs` runs, for at most `skills.rehearsal.max_cost_usd`. What keeps it from a run is its `problem`. */
    rehearse(subject: RehearsalSubject): Effect.Effect<Rehearsal, DatabaseAway>
  }
>()("choir/choird/Rehearsals") {
  static readonly layer = Layer.effect(
    Rehearsals,
    Effect.suspend(() => make)
  )
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8")

/** A recorded session on which a proposal is compared with today. */
interface Case {
  readonly session_id: SessionId
  /** The run of a skill that is repeated; a tool may have been called by none. */
  readonly run?: RunPlace & { readonly skill: string }
  /** Reasons for which the proposal is worse by its record alone. */
  readonly worse: ReadonlyArray<string>
  /** Calls of a tool on whose inputs its program can be run. */
  readonly calls: ReadonlyArray<EndedCall>
}

interface EndedCall {
  readonly input: Schema.Json
  readonly result: RecordedResult
}

/** The skills and manifests of an image's files, which a merge has checked. */
export const trialImage = ({ files }: ImagePlan): TrialImage => {
  const held = files.filter(isHeld)
  const schemas = new Map(
    held.flatMap(({ bytes, path }) => {
      const stem = path.startsWith(`${SCHEMAS_FOLDER}/`) ? basename(path, ".json") : undefined
      const read = stem === undefined ? undefined : readPinnedSchema(stem, textOf(bytes))
      return stem !== undefined && read !== undefined && Result.isSuccess(read) ? [[stem, read.success] as const] : []
    })
  )
  const skills = held.flatMap(({ bytes, path }) => {
    const stem = /^skills\/([^/_][^/]*)\.json$/u.exec(path)?.[1]
    const read = stem === undefined ? undefined : readSkill(stem, textOf(bytes), { schemas })
    return read !== undefined && Result.isSuccess(read) ? [read.success] : []
  })
  const manifests = held.flatMap(({ bytes, path }) => {
    const scope = /^tools\/(global|agent)\/[^/]+\.json$/u.exec(path)?.[1]
    const read = scope === "global" || scope === "agent" ? readToolManifest(scope, textOf(bytes)) : undefined
    return read !== undefined && Result.isSuccess(read) ? [read.success.manifest] : []
  })
  return { skills: [...BUILT_IN_SKILLS, ...skills], manifests }
}

/** An agent's configuration within the limits of one trial. */
export const trialConfig = (config: AgentConfig, max_cost_usd: number): AgentConfig => ({
  ...config,
  budgets: {
    ...config.budgets,
    max_cost_usd: Math.min(max_cost_usd, config.budgets.max_cost_usd ?? max_cost_usd),
    total_session_tokens: Math.min(TRIAL_TOKENS_MAX, config.budgets.total_session_tokens),
    per_job_wall_time_ms: Math.min(TRIAL_MS_MAX - TRIAL_MARGIN_MS, config.budgets.per_job_wall_time_ms)
  }
})

const outputSchema = ({ skills }: TrialImage, name: string) => {
  const ref = skills.find((spec) => spec.name === name)?.output_schema
  return ref === undefined ? undefined : schemaOf(ref)
}

const costOf = (outcomes: ReadonlyArray<TrialOutcome>): number =>
  outcomes.reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0)

/** A session without the most of its calls, whose inputs may be large. */
const toolCase = (
  { calls, run, session_id }: ToolSession,
  today: ToolManifest | undefined,
  proposed: ToolManifest,
  calls_max: number
): Case => {
  const inputs = calls.map(({ input }) => input)
  const ended = calls.flatMap(({ input, result }) => (result === undefined ? [] : [{ input, result }]))
  return {
    session_id,
    worse: worseForCalls(today, proposed, inputs),
    calls: ended.slice(0, calls_max),
    ...(run === undefined ? {} : { run })
  }
}

/** The verdicts of a tool's program by session, and the line about it for a person. */
interface ProgramRuns {
  readonly told: NonNullable<Rehearsal["program"]>
  readonly verdicts: ReadonlyMap<SessionId, Comparison>
}

/** Runs both programs on the recorded calls, today's first and each in a place of its own, so that the proposed one touches nothing of the other. */
const runPrograms = Effect.fnUntraced(function* (programs: Programs, cases: ReadonlyArray<Case>) {
  const none = (problem: string): ProgramRuns => ({ told: { calls: 0, problem }, verdicts: new Map() })
  if (Result.isFailure(programs)) return none(programs.failure)
  const all = cases
    .flatMap(({ calls, session_id }) => calls.map((call) => ({ ...call, session_id })))
    .slice(0, PROGRAM_CALLS_MAX)
  if (all.length === 0) return none("no recorded call has a result that can be compared")
  const inputs = all.map(({ input }) => input)
  const { proposed, today } = programs.success
  const ran = yield* Effect.result(Effect.all([today(inputs), proposed(inputs)]))
  if (Result.isFailure(ran)) return none(ran.failure.message)
  const [before, after] = ran.success
  const calls = all.flatMap(({ result, session_id }, index) => {
    const [one, other] = [before[index], after[index]]
    return one === undefined || other === undefined
      ? []
      : [{ session_id, recorded: result, today: one, proposed: other }]
  })
  const ofSession = Map.groupBy(calls, ({ session_id }) => session_id)
  const verdicts = new Map([...ofSession].map(([session_id, own]) => [session_id, comparePrograms(own)] as const))
  return { told: { calls: calls.length }, verdicts }
})

/** Finds what a proposal is rehearsed on. */
const makeCases = Effect.gen(function* () {
  const stores = yield* Effect.context<SqlClient.SqlClient | EventStore>()

  const count = ({ agent_id, kind, name, session_id }: Place, last: number) => {
    const options = { held_out: session_id, last }
    const found: Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> =
      kind === "tool"
        ? Stream.runCount(findToolSessions(agent_id, name, options))
        : Effect.map(findRuns(agent_id, name, options), ({ length }) => length)
    return Effect.provideContext(found, stores)
  }

  const skillCases = ({ agent_id, name, session_id }: RehearsalSubject, last: number) =>
    Effect.map(
      Effect.provideContext(findRuns(agent_id, name, { held_out: session_id, last }), stores),
      (runs): ReadonlyArray<Case> =>
        runs.map((run) => ({ session_id: run.session_id, run: { ...run, skill: name }, worse: [], calls: [] }))
    )

  /** A draft has no manifest in the image, and nothing to be compared. */
  const toolCases = Effect.fnUntraced(function* (subject: RehearsalSubject, last: number) {
    const manifestOf = ({ manifests }: TrialImage) => manifests.find(({ llm }) => llm.name === subject.name)
    const [today, proposed] = [manifestOf(subject.today), manifestOf(subject.proposed)]
    if (proposed === undefined) return []
    const { agent_id, name, session_id } = subject
    return yield* findToolSessions(agent_id, name, { held_out: session_id, last }).pipe(
      Stream.map((session) => toolCase(session, today, proposed, Math.ceil(PROGRAM_CALLS_MAX / last))),
      Stream.runCollect
    )
  }, Effect.provideContext(stores))

  return {
    count,
    of: (subject: RehearsalSubject, last: number) =>
      subject.kind === "tool" ? toolCases(subject, last) : skillCases(subject, last)
  }
})

/** The configuration and the keys of the models that the proposing session has. */
const shareOf = Effect.fnUntraced(function* (running: Config, { agent_id, session_id }: RehearsalSubject) {
  const config = yield* ConfigStore
  const sessions = yield* SessionStore
  const session = yield* sessions.get(session_id)
  if (session._tag === "None") return undefined
  const share = yield* withOfflineAddress(agentConfig(running, session.value.resource_bindings, agent_id))
  const names = Object.values(share.models).flatMap(({ secret }) => secret ?? [])
  const values = yield* config.secretValues(names)
  return { share, secrets: Object.fromEntries(values) as Record<SecretName, Redacted.Redacted> }
})

type Share = NonNullable<Effect.Success<ReturnType<typeof shareOf>>>

/** The replay of a recorded run by an image's skill, for at most what is left to spend. */
const replayOf = (
  { secrets, share }: Share,
  left_usd: number,
  image: TrialImage,
  skill: string,
  { input, record }: RecordedRun
) => ({
  config: trialConfig(share, left_usd),
  secrets,
  ...image,
  skill: SkillName.make(skill),
  ...(input === undefined ? {} : { input }),
  record
})

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const trials = yield* SkillReplays
  const onDatabase = yield* useDatabase
  const stores = Context.pick(
    ConfigStore,
    EventStore,
    SessionStore,
    SqlClient.SqlClient
  )(yield* Effect.context<ConfigStore | EventStore | SessionStore | SqlClient.SqlClient>())
  const cases = yield* makeCases

  const rehearse = Effect.fn("Rehearsals.rehearse")(function* (subject: RehearsalSubject) {
    const { config: running } = yield* config.current
    const { max_cost_usd, runs } = running.skills.rehearsal
    const found = runs === 0 ? [] : yield* cases.of(subject, runs)
    const share = yield* Effect.provideContext(shareOf(running, subject), stores)
    if (share === undefined) return { kind: subject.kind, runs: [], cost_usd: 0, problem: "its session is gone" }
    const programs =
      subject.programs === undefined || found.length === 0 ? undefined : yield* runPrograms(subject.programs, found)
    const rehearsed: Array<RehearsedRun> = []
    let spent = 0
    const trial = Effect.fnUntraced(function* (image: TrialImage, skill: string, run: RecordedRun) {
      const outcome = yield* trials.run(replayOf(share, max_cost_usd - spent, image, skill, run))
      spent += costOf([outcome])
      return outcome
    })
    const result = (problem?: string): Rehearsal => ({
      kind: subject.kind,
      runs: rehearsed,
      ...(programs === undefined ? {} : { program: programs.told }),
      cost_usd: spent,
      ...(problem === undefined ? {} : { problem })
    })
    for (const { run: place, session_id, worse } of found) {
      const program = programs?.verdicts.get(session_id)
      const byProgram = program === undefined ? [] : [program]
      if (spent >= max_cost_usd) return result(`skills.rehearsal.max_cost_usd (${max_cost_usd} USD) is spent`)
      const run =
        place === undefined ? Option.none() : yield* Effect.option(Effect.provideContext(readRun(place), stores))
      if (place === undefined || run._tag === "None") {
        if (subject.kind === "tool") rehearsed.push({ session_id, ...withRecord(worse, ...byProgram) })
        continue
      }
      const both = yield* Effect.result(
        Effect.all([trial(subject.today, place.skill, run.value), trial(subject.proposed, place.skill, run.value)])
      )
      if (Result.isFailure(both)) return result(both.failure.message)
      const [today, proposed] = both.success
      const compared = compareTrials(today, proposed, place.outcome, outputSchema(subject.today, place.skill))
      rehearsed.push({
        session_id,
        ...(subject.kind === "tool" ? withRecord(worse, ...byProgram, compared) : compared)
      })
    }
    return result(rehearsed.length === 0 ? nothingRecorded(subject.kind) : undefined)
  }, onDatabase)

  return Rehearsals.of({
    isPossible: Effect.fn("Rehearsals.isPossible")(function* (subject) {
      const { config: running } = yield* config.current
      return running.skills.rehearsal.runs > 0 && (yield* cases.count(subject, 1)) > 0
    }, onDatabase),
    rehearse
  })
})
