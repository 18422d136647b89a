/** The judgement of a skill by the gate: nine points, the grade that follows from them, and the most that a run can take. */
import { Schema } from "effect"
import { Capabilities } from "./Capability.ts"
import { ExecutionClass } from "./SkillContract.ts"
import { SkillTier, SkillVersion } from "./SkillRegistryEntry.ts"

/** The points in their order; without `machine` and `capabilities` a skill is rejected. */
export const SKILL_POINTS = [
  "shape",
  "machine",
  "does",
  "scopes",
  "pins",
  "capabilities",
  "assertions",
  "anchors",
  "language"
] as const

export const SkillPoint = Schema.Struct({
  point: Schema.Literals(SKILL_POINTS),
  ok: Schema.Boolean,
  /** The proof, or everything that is missing. */
  detail: Schema.String
})
export type SkillPoint = typeof SkillPoint.Type

/** `verified` has nine points, `community` seven or eight, `experimental` fewer; `rejected` lacks one that nothing makes up for. */
export const SkillGrade = Schema.Literals(["verified", "community", "experimental", "rejected"])
export type SkillGrade = typeof SkillGrade.Type

/** The most that one run can take, whatever its model does. Tokens and dollars are null where the model or its price is unknown. */
export const SkillBounds = Schema.Struct({
  model_calls: Schema.Natural,
  tokens: Schema.NullOr(Schema.Natural),
  usd: Schema.NullOr(Schema.Finite),
  locks: Schema.Array(Schema.String)
})
export type SkillBounds = typeof SkillBounds.Type

export const SkillReport = Schema.Struct({
  name: Schema.String,
  grade: SkillGrade,
  passed: Schema.Natural,
  points: Schema.Array(SkillPoint),
  bounds: SkillBounds,
  execution_class: ExecutionClass,
  tier: Schema.NullOr(SkillTier),
  version: Schema.NullOr(SkillVersion),
  capabilities: Capabilities,
  /** The times, messages and jobs at which it begins by itself; absent where it does not. */
  begins: Schema.optionalKey(Schema.Array(Schema.String)),
  does: Schema.NullOr(Schema.String),
  does_not: Schema.NullOr(Schema.String)
})
export type SkillReport = typeof SkillReport.Type
