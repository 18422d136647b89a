/** The part of config.json about growing data. */
import { Schema } from "effect"
import { withDefault } from "./withDefault.ts"

const Days = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 36_500 }))
const Mebibytes = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_073_741_824 }))

/** How long growing data is kept, and how much room it may take (docs/retention.md). `null` means unlimited. */
export const RetentionConfig = Schema.Struct({
  session_mb: withDefault(Mebibytes, 4096),
  sessions_days: withDefault(Schema.NullOr(Days), 90),
  archives_days: withDefault(Schema.NullOr(Days), 730),
  archives_mb: withDefault(Schema.NullOr(Mebibytes), 10_240),
  messages_days: withDefault(Days, 90),
  unread_days: withDefault(Schema.NullOr(Days), 365),
  approvals_days: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 30, maximum: 36_500 })), 365),
  call_results_days: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 7, maximum: 36_500 })), 30),
  snapshots_days: withDefault(Days, 7),
  /** At least as long as the history that the choice of jobs looks at. */
  runs_days: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 90, maximum: 36_500 })), 365),
  audit_days: withDefault(Days, 365),
  config_versions: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 10, maximum: 100_000 })), 500),
  logs_days: withDefault(Schema.NullOr(Days), 365),
  logs_mb: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 16, maximum: 1_048_576 })), 1024),
  unused_days: withDefault(Schema.NullOr(Days), 30),
  workspace_mb: withDefault(Schema.NullOr(Mebibytes), 10_240),
  disk_free_mb: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_073_741_824 })), 2048),
  disk_free_percent: withDefault(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 50 })), 5)
})
export type RetentionConfig = typeof RetentionConfig.Type
