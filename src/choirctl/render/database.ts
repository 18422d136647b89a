/** What the commands of `choirctl db` did, for people. */

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
