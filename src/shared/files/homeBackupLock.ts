/**
 * The lock of a backup that copies a home. While it is held, choird keeps the files of archived sessions that are deleted: the backup's copy
 * of the database may be older than the deletion, and then still names them.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { lockHolder } from "./lockFile.ts"

export const homeBackupLockPath = (home: string): string => join(home, "backup.lock")

export const homeBackupRuns = (home: string): Effect.Effect<boolean> =>
  Effect.map(lockHolder(homeBackupLockPath(home)), ({ held }) => held)
