/** Bounds of the work that retention does beside everything else. */

/** Rows that one statement changes; the embedded database has one backend. */
export const PRUNE_ROWS_MAX = 500
/** Events that one statement removes. */
export const EVENTS_REMOVED_MAX = 500
/** Statements of one kind in one look of the background job. What is left waits for the next look. */
export const PRUNE_STEPS_MAX = 40
/** Sessions that one look archives, and that it deletes. */
export const SESSIONS_LOOK_MAX = 200
/** The pause after each statement, in which others reach the database. */
export const PRUNE_PAUSE_MS = 20
/** Between two looks for what is too old. */
export const RETENTION_LOOK_MS = 600_000
/** How long ids outlive their texts, so that what is delivered again is known: gateways try for a day at most. */
export const IDS_KEPT_DAYS = 30
/** Between two looks at the free disk. */
export const DISK_LOOK_MS = 5000
/** How far above its limit the free disk has to come before agents are woken. */
export const DISK_WAKE_FACTOR = 1.1
/** The share of that limit below which all agents are paused; above it only those that hold the most. */
export const DISK_ALL_SHARE = 0.5
/** Between two counts of the workspaces, the entries of one step of it, and the pause after each. */
export const WORKSPACE_LOOK_MS = 600_000
export const WORKSPACE_STEP_ENTRIES = 256
export const WORKSPACE_STEP_MS = 20
/** Entries after which a count ends; what it has found by then is a lower bound. */
export const WORKSPACE_ENTRIES_MAX = 2_000_000
/** Folders of one workspace that wait to be looked into. */
export const WORKSPACE_FOLDERS_MAX = 200_000
