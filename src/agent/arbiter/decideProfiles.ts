/** The choice of a job's profile and the limits that follow from it: types, pools, tools, skills, time and tokens. Pure. */
import { Result } from "effect"
import type { CoreJobStart } from "#schema/Core.ts"
import type { JobPool, JobProfile, ProfileHistories, ProfileHistory } from "#schema/JobProfile.ts"
import { shownName, type ToolName } from "#schema/Tool.ts"
import type { CoreLane, SessionState } from "#src/shared/session/State.ts"
import type { Find, Situation } from "./Command.ts"
import type { JobTool } from "./Command.ts"

type Wanted = Pick<CoreJobStart, "agent_type" | "pool" | "skill" | "skill_refs" | "tool_constraints">

/** The part of a start that its profile decides. */
export interface Profiled {
  readonly profile: JobProfile | undefined
  readonly start: Pick<CoreJobStart, "agent_type" | "pool" | "skill_refs">
  readonly allowed_tools: ReadonlyArray<ToolName>
}

/** The type and the pool that a job was started with. */
const kindOf = (core: CoreLane, find: Find): Pick<CoreJobStart, "agent_type" | "pool"> => {
  const started = find(core.started_rev)
  return started?.event_type === "CoreStarted" ? started.payload.start : {}
}

const running = (
  { cores }: SessionState,
  find: Find,
  fits: (kind: Pick<CoreJobStart, "agent_type" | "pool">) => boolean
): ReadonlyArray<string> =>
  [...cores.values()].filter((core) => fits(kindOf(core, find))).map(({ job_name }) => job_name)

const poolFull = (state: SessionState, pool: JobPool, { find, pools }: Situation): string | undefined => {
  const jobs = running(state, find, (kind) => kind.pool === pool)
  return jobs.length < pools[pool]
    ? undefined
    : `CAPACITY: the pool ${pool} is full (jobs.pools.${pool} is ${pools[pool]}; running: ${jobs.join(", ") || "none"}). Wait for one to end, cancel one, or do the work yourself`
}

const typeFull = (state: SessionState, { agent_type, limits }: JobProfile, find: Find): string | undefined => {
  const jobs = running(state, find, (kind) => kind.agent_type === agent_type)
  return jobs.length < limits.max_concurrent_tasks
    ? undefined
    : `CAPACITY: ${jobs.length} of ${limits.max_concurrent_tasks} jobs of the type ${agent_type} run (${jobs.join(", ")}). Wait for one to end, cancel one, or choose another type`
}

const mayRun = ({ skills }: JobProfile, skill: string | undefined): boolean =>
  skill === undefined || skills.length === 0 || skills.some((name) => name === skill)

/** Few runs say little: a type without any counts as one that succeeds in half of them. */
const expected = ({ success_rate, total_runs }: ProfileHistory): number =>
  (success_rate * total_runs + 1) / (total_runs + 2)

const unmeasured: ProfileHistory = { success_rate: 0, avg_duration_ms: 0, total_runs: 0 }
const historyOf = (histories: ProfileHistories, { agent_type }: JobProfile): ProfileHistory =>
  Object.hasOwn(histories, agent_type) ? (histories[agent_type] ?? unmeasured) : unmeasured

/** The better measured type first; of equal ones the quicker, then by name. */
const byHistory =
  (histories: ProfileHistories) =>
  (a: JobProfile, b: JobProfile): number => {
    const [first, second] = [historyOf(histories, a), historyOf(histories, b)]
    return (
      expected(second) - expected(first) ||
      first.avg_duration_ms - second.avg_duration_ms ||
      (a.agent_type < b.agent_type ? -1 : 1)
    )
  }

const choose = (
  state: SessionState,
  { agent_type, pool, skill }: Wanted,
  situation: Situation
): Result.Result<JobProfile | undefined, string> => {
  const { find, histories, profiles } = situation
  if (agent_type !== undefined) {
    const profile = profiles.get(agent_type)
    if (profile === undefined)
      return Result.fail(`there is no job type ${agent_type}; there are ${[...profiles.keys()].join(", ") || "none"}`)
    if (pool !== undefined && pool !== profile.pool)
      return Result.fail(`the job type ${agent_type} belongs to the pool ${profile.pool}, not ${pool}: leave pool out`)
    if (!mayRun(profile, skill?.name))
      return Result.fail(
        `the job type ${agent_type} may not run the skill ${skill?.name}; it may run ${profile.skills.join(", ")}`
      )
    const full = typeFull(state, profile, find)
    return full === undefined ? Result.succeed(profile) : Result.fail(full)
  }
  if (pool === undefined) return Result.succeed(undefined)
  const fitting = [...profiles.values()].filter((profile) => profile.pool === pool && mayRun(profile, skill?.name))
  if (fitting.length === 0) return Result.succeed(undefined)
  const free = fitting.filter((profile) => typeFull(state, profile, find) === undefined)
  const [best] = free.sort(byHistory(histories))
  return best === undefined
    ? Result.fail(
        `CAPACITY: every job type of the pool ${pool} is at its limit: ${fitting.map((profile) => profile.agent_type).join(", ")}. Wait for one to end, or cancel one`
      )
    : Result.succeed(best)
}

/** The tools that are left of those asked for; empty where nothing narrows them. */
const narrowed = (
  { agent_type, permissions }: JobProfile,
  wanted: ReadonlyArray<ToolName>,
  tools: ReadonlyArray<JobTool>
): Result.Result<ReadonlyArray<ToolName>, string> => {
  const own = permissions.tools
  if (own.length === 0 && permissions.write_access) return Result.succeed(wanted)
  const allowed = tools
    .filter(({ effect }) => permissions.write_access || effect === "none")
    .map(({ name }) => name)
    .filter((name) => own.length === 0 || own.includes(name))
  const left = wanted.length === 0 ? allowed : wanted.filter((name) => allowed.includes(name))
  return left.length > 0
    ? Result.succeed(left)
    : Result.fail(
        `the job type ${agent_type} allows none of these tools; it allows ${allowed.map(shownName).join(", ") || "none"}`
      )
}

const refsOf = (
  profile: JobProfile | undefined,
  { skill, skill_refs }: Wanted
): Result.Result<Pick<CoreJobStart, "skill_refs">, string> => {
  const own = profile === undefined || profile.skills.length === 0 ? undefined : profile.skills
  const refs = skill_refs === undefined ? own : skill_refs.filter((name) => own === undefined || own.includes(name))
  if (skill !== undefined && skill_refs !== undefined && !skill_refs.includes(skill.name))
    return Result.fail(`skill_refs leaves out the job's own skill ${skill.name}: add it, or leave skill_refs out`)
  return Result.succeed(refs === undefined ? {} : { skill_refs: refs })
}

/** The profile of a job that is to start and what it may do, or why it cannot start. */
export const profiled = (
  state: SessionState,
  wanted: Wanted,
  tools: ReadonlyArray<JobTool>,
  situation: Situation
): Result.Result<Profiled, string> => {
  const chosen = choose(state, wanted, situation)
  if (Result.isFailure(chosen)) return Result.fail(chosen.failure)
  const profile = chosen.success
  const pool = profile?.pool ?? wanted.pool
  const full = pool === undefined ? undefined : poolFull(state, pool, situation)
  if (full !== undefined) return Result.fail(full)
  const refs = refsOf(profile, wanted)
  if (Result.isFailure(refs)) return Result.fail(refs.failure)
  const given = wanted.tool_constraints.allowed_tools
  const allowed = profile === undefined ? Result.succeed(given) : narrowed(profile, given, tools)
  return Result.map(allowed, (allowed_tools) => ({
    profile,
    start: {
      ...(profile === undefined ? {} : { agent_type: profile.agent_type }),
      ...(pool === undefined ? {} : { pool }),
      ...refs.success
    },
    allowed_tools
  }))
}
