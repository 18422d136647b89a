/**
 * Where the files of each workspace came from, kept by its folder beyond the sessions that worked there: what one session wrote after it had read
 * a page is text from outside for every later one (D31). A label only grows, until a person empties the folder or says that it can be trusted.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { withSources } from "#src/shared/session/sources.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

export class WorkspaceLabels extends Context.Service<
  WorkspaceLabels,
  {
    /** The label of a folder; empty where nothing in there is known to be from outside. */
    of(path: string): Effect.Effect<WorkspaceLabel, DatabaseAway>
    /** All labels by the keys of their folders. */
    readonly all: Effect.Effect<ReadonlyArray<readonly [string, WorkspaceLabel]>, DatabaseAway>
    /** Forgets the label of a folder, by a person's order. */
    drop(path: string): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/sessions/WorkspaceLabels") {
  static readonly layer = Layer.effect(
    WorkspaceLabels,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      return WorkspaceLabels.of({
        of: Effect.fn("WorkspaceLabels.of")(labelOf, onDatabase),
        all: onDatabase(
          Effect.gen(function* () {
            const rows = yield* sql<{ readonly path: string; readonly label: unknown }>`SELECT path, label
              FROM choir_control.workspace_labels ORDER BY path`
            return yield* Effect.forEach(rows, ({ label, path }) =>
              Effect.map(Effect.orDie(decodeLabel(label)), (decoded) => [path, decoded] as const)
            )
          })
        ),
        drop: Effect.fn("WorkspaceLabels.drop")(function* (path) {
          yield* sql`DELETE FROM choir_control.workspace_labels WHERE path = ${labelKey(path)}`
        }, onDatabase)
      })
    })
  )
}

/** The folder of a workspace by its name in config.json. */
export const workspacePath = ({ workspaces }: Config, name: string): string | undefined =>
  Object.hasOwn(workspaces, name) ? (workspaces as Readonly<Record<string, { path: string }>>)[name]?.path : undefined

/** The key of a folder. */
export const labelKey = (path: string): string => path.replace(/\/+$/u, "")

const decodeLabel = Schema.decodeUnknownEffect(WorkspaceLabel)

const labelOf = Effect.fnUntraced(function* (path: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly label: unknown }>`SELECT label FROM choir_control.workspace_labels
    WHERE path = ${labelKey(path)}`
  return row === undefined ? ({} satisfies WorkspaceLabel) : yield* Effect.orDie(decodeLabel(row.label))
})

type Origin = Pick<SessionState, "workspace_received" | "workspace_sources" | "workspace_tainted">

const originOf = ({ workspace_received, workspace_sources, workspace_tainted }: Origin): WorkspaceLabel => ({
  ...(workspace_tainted ? { written_from: workspace_sources } : {}),
  ...(workspace_received ? { received: true } : {})
})

/** Both labels: neither takes anything from the other. */
export const widened = (one: WorkspaceLabel, other: WorkspaceLabel): WorkspaceLabel => ({
  ...(one.written_from === undefined && other.written_from === undefined
    ? {}
    : { written_from: withSources(one.written_from ?? [], other.written_from ?? []) }),
  ...(one.received === true || other.received === true ? { received: true } : {})
})

/**
 * In the transaction of the events that changed what a session knows of its workspace. An event that only a later Choir knows may have written
 * anything.
 */
export const labelWorkspace = Effect.fnUntraced(function* (
  path: string | undefined,
  before: SessionState,
  after: SessionState,
  isNewer: boolean
) {
  const unchanged =
    before.workspace_tainted === after.workspace_tainted &&
    before.workspace_sources === after.workspace_sources &&
    before.workspace_received === after.workspace_received
  if (path === undefined || (unchanged && !isNewer)) return
  const sql = yield* SqlClient.SqlClient
  const known = yield* labelOf(path)
  const label = widened(widened(known, originOf(after)), isNewer ? { written_from: [], received: true } : {})
  yield* sql`INSERT INTO choir_control.workspace_labels (path, label)
    VALUES (${labelKey(path)}, ${canonicalJson(label)}::jsonb)
    ON CONFLICT (path) DO UPDATE SET label = excluded.label`
})
