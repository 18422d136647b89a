/** The capability profile of a kind of job, a file `profiles/<agent_type>.json` of a global or agent repository. */
import { Effect, Schema } from "effect"
import { SkillName } from "./Skill.ts"
import { ToolNameInEitherForm } from "./Tool.ts"

/** A kind of job, and the name of its profile's file without `.json`. */
export const AgentType = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9_-]{0,39}$/u, { message: "an agent type is a-z, then up to 39 of a-z, 0-9, _ and -" })
).pipe(Schema.brand("AgentType"))
export type AgentType = typeof AgentType.Type

/** The pools of jobs; each job is of at most one. */
export const JobPool = Schema.Literals(["research", "implementation", "verification", "review"])
export type JobPool = typeof JobPool.Type

const none = <A>(): Effect.Effect<ReadonlyArray<A>> => Effect.succeed([])

/** Empty `tools` are all of a job's. Without `write_access` only tools without an effect are left. No job is an administrator. */
const Permissions = Schema.Struct({
  tools: Schema.Array(ToolNameInEitherForm)
    .check(Schema.isMaxLength(64))
    .pipe(Schema.withDecodingDefaultKey(none<string>())),
  write_access: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  admin_access: Schema.Literal(false).pipe(Schema.withDecodingDefaultKey(Effect.succeed(false as const)))
})

const Limits = Schema.Struct({
  max_concurrent_tasks: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(1))
  ),
  token_budget: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))),
  timeout_ms: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1000, maximum: 86_400_000 })))
})

export const JobProfile = Schema.Struct({
  agent_type: AgentType,
  description: Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(500))),
  pool: JobPool,
  /** Skills that such a job may begin; empty are all. */
  skills: Schema.Array(SkillName).check(Schema.isMaxLength(64)).pipe(Schema.withDecodingDefaultKey(none<string>())),
  permissions: Permissions.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  limits: Limits.pipe(Schema.withDecodingDefaultKey(Effect.succeed({})))
})
export type JobProfile = typeof JobProfile.Type

/** How the jobs of a type ended: the share that completed with a writeback, their mean time and their number. */
export const ProfileHistory = Schema.Struct({
  success_rate: Schema.Finite,
  avg_duration_ms: Schema.Natural,
  total_runs: Schema.Natural
})
export type ProfileHistory = typeof ProfileHistory.Type

export const ProfileHistories = Schema.Record(AgentType, ProfileHistory)
export type ProfileHistories = typeof ProfileHistories.Type
