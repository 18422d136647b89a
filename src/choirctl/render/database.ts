/** What the commands of `choirctl db` did, for people. */
import { bytesText } from "#src/shared/text/bytesText.ts"

interface Migrated {
  readonly running: boolean
  readonly applied: ReadonlyArray<number>
  readonly migration?: number
}

export const migratedText = ({ applied, migration, running }: Migrated): string => {
  if (running) return "choird runs, and brought its database up to date when it started"
  return applied.length === 0
    ? `the database is up to date (migration ${migration})`
    : `migrations ${applied.join(", ")} done; the database has migration ${migration}`
}

interface Copied {
  readonly created_at: string
  readonly sessions: number
  readonly events: number
}

const contents = ({ events, sessions }: Copied) => `${sessions} sessions with ${events} events`

/** Says each time what a backup leaves out: a person who needs it has lost the rest. */
export const backedUpText = (made: Copied & { readonly path: string; readonly bytes: number }): string =>
  [
    `${made.path}: ${contents(made)}, ${bytesText(made.bytes)}, as of ${made.created_at}`,
    "Not in it: config.json, secrets.json, repositories, images, logs and the workspaces."
  ].join("\n")

export const restoredText = (restored: Copied): string =>
  `restored ${contents(restored)}, as of ${restored.created_at}; a starting choird resumes those that were active`
