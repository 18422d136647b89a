/** How an operator changes what choird runs with: in two phases, load and apply, and back to what ran before. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId } from "./Ids.ts"
import { CommitId } from "./Image.ts"
import { Progress } from "./Progress.ts"

/** Whether choird and running agents take a change over as they are, or something has to be restarted. */
export const ChangeClass = Schema.Literals(["hot-reload", "restart-required"])
export type ChangeClass = typeof ChangeClass.Type

/**
 * A row of `config diff`. `path` is a dotted path of config.json, `secrets.<name>`, `<repository>:<file>` or `<repository> repo`;
 * `change` is added, changed, removed, or the two commits of a repository; `command` is what puts it to work.
 */
export const ConfigChange = Schema.Struct({
  path: Schema.String,
  change: Schema.String,
  class: ChangeClass,
  command: Schema.String
})
export type ConfigChange = typeof ConfigChange.Type

/**
 * A change as an operator is shown it before it is applied. `before` and `after` are shortened JSON; null where there is no value, and
 * for secrets and repositories. `applies` says that applying changes what choird runs with at this path: what does not only waits
 * for a restart. `restarts` are the running agents that take it over by a restart alone.
 */
export const PlannedChange = Schema.Struct({
  ...ConfigChange.fields,
  before: Schema.NullOr(Schema.String),
  after: Schema.NullOr(Schema.String),
  applies: Schema.Boolean,
  restarts: Schema.Array(AgentId)
})
export type PlannedChange = typeof PlannedChange.Type

/** All that is staged, under a name by which exactly this can be applied. */
export const ConfigPlan = Schema.Struct({
  plan: Schema.String,
  version: Schema.Natural,
  changes: Schema.Array(PlannedChange)
})
export type ConfigPlan = typeof ConfigPlan.Type

/** A repository as it was loaded. `stale` says that the fetch failed; `commit` is null when there is no earlier clone either. */
export const LoadedRepo = Schema.Struct({
  repo: Schema.String,
  commit: Schema.NullOr(CommitId),
  stale: Schema.Boolean
})
export type LoadedRepo = typeof LoadedRepo.Type

/** The changes that `config load` has staged. */
export const LoadReport = Schema.Struct({
  changes: Schema.Array(ConfigChange),
  repos: Schema.Array(LoadedRepo),
  warnings: Schema.Array(Schema.String)
})
export type LoadReport = typeof LoadReport.Type

export const LoadProgress = Progress(LoadReport)
export type LoadProgress = typeof LoadProgress.Type

/** The result of an apply or a rollback: what is in force now, and what still waits for a restart. */
export const ApplyReport = Schema.Struct({
  version: Schema.Natural,
  previous: Schema.Natural,
  applied: Schema.Array(ConfigChange),
  pending: Schema.Array(ConfigChange)
})
export type ApplyReport = typeof ApplyReport.Type

/** A configuration that ran. `action` is what made it: start, apply, rollback, secret apply or model set. */
export const VersionSummary = Schema.Struct({
  version: Schema.Natural,
  created_at: Schema.String,
  action: Schema.String,
  who: Schema.String,
  running: Schema.Boolean
})
export type VersionSummary = typeof VersionSummary.Type

/** The result of `secret apply`: names, never values. */
export const SecretReport = Schema.Struct({
  version: Schema.Natural,
  changed: Schema.Array(Schema.Struct({ name: Schema.String, change: Schema.String })),
  pending: Schema.Array(ConfigChange)
})
export type SecretReport = typeof SecretReport.Type

const error = ApiErrors

export const Configuration = HttpApiGroup.make("configuration").add(
  HttpApiEndpoint.post("load", "/config/load", {
    success: HttpApiSchema.StreamNdjson({ schema: LoadProgress }),
    error
  }),
  HttpApiEndpoint.get("diff", "/config/diff", { success: Schema.Array(ConfigChange), error }),
  HttpApiEndpoint.post("apply", "/config/apply", { success: ApplyReport, error }),
  HttpApiEndpoint.get("plan", "/config/plan", { success: ConfigPlan, error }),
  /** Takes over what the plan showed, secrets included, and nothing else: refused where anything of it has changed since. */
  HttpApiEndpoint.post("applyPlan", "/config/plan", {
    payload: Schema.Struct({ plan: Schema.String.check(Schema.isMaxLength(64)) }),
    success: ApplyReport,
    error
  }),
  HttpApiEndpoint.post("rollback", "/config/rollback", {
    payload: Schema.Struct({ version: Schema.Natural }),
    success: ApplyReport,
    error
  }),
  HttpApiEndpoint.get("history", "/config/history", { success: Schema.Array(VersionSummary), error }),
  HttpApiEndpoint.get("version", "/config/versions/:version", {
    params: { version: Schema.FiniteFromString },
    success: Schema.Json,
    error
  }),
  HttpApiEndpoint.post("applySecrets", "/secrets/apply", { success: SecretReport, error })
)
