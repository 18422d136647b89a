/**
 * Where the files of each workspace came from, kept by its folder beyond the sessions that worked there: what one session wrote after it had read
 * a page is text from outside for every later one (D31). A label only grows, until a person empties the folder or says that it can be trusted.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { SessionId } from "#schema/Ids.ts"
import { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { realOf } from "#src/choird/config/realFolder.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import {
  joinedOrigins,
  labelAfter,
  labelOfOrigin,
  originOfLabel,
  settledLabel
} from "#src/shared/session/workspaceLabel.ts"
import { isCopying } from "#src/shared/session/workspaceOrigin.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

export class WorkspaceLabels extends Context.Service<
  WorkspaceLabels,
  {
    /**
     * The label of a folder; empty where nothing in there is known to be from outside. What calls under way may be writing counts as written, but
     * for those of the session that asks.
     */
    of(path: string, session_id?: SessionId): Effect.Effect<WorkspaceLabel, DatabaseAway>
    /** All labels by the keys of their folders. */
    readonly all: Effect.Effect<ReadonlyMap<string, WorkspaceLabel>, DatabaseAway>
    /** Notes that a folder gets a file from a person, before it is there. */
    receive(path: string): Effect.Effect<void, DatabaseAway>
    /**
     * Forgets the label of a folder, by a person's order. A session that is continued there labels it again with the first event that it
     * stores, if it knows of text from outside.
     */
    drop(path: string): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/WorkspaceLabels") {
  static readonly layer = Layer.effect(
    WorkspaceLabels,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      return WorkspaceLabels.of({
        of: Effect.fn("WorkspaceLabels.of")(function* (path, session_id) {
          return settledLabel((yield* allLabels).get(labelKey(path)) ?? {}, session_id)
        }, onDatabase),
        all: onDatabase(
          Effect.map(allLabels, (labels) => new Map([...labels].map(([path, label]) => [path, settledLabel(label)])))
        ),
        receive: Effect.fn("WorkspaceLabels.receive")(function* (path) {
          yield* sql`INSERT INTO choir_control.workspace_labels AS stored (path, label)
            VALUES (${labelKey(path)}, '{"received":true}'::jsonb)
            ON CONFLICT (path) DO UPDATE SET label = stored.label || excluded.label`
        }, onDatabase),
        drop: Effect.fn("WorkspaceLabels.drop")(function* (path) {
          const key = labelKey(path)
          const stored = (yield* storedLabels).map((row) => row.path).filter((each) => labelKey(each) === key)
          yield* sql`DELETE FROM choir_control.workspace_labels WHERE path = ANY(${stored}::text[])`
        }, onDatabase)
      })
    })
  )
}

/** The folder of a workspace by its name in config.json. */
export const workspacePath = ({ workspaces }: Config, name: string): string | undefined =>
  Object.hasOwn(workspaces, name) ? (workspaces as Readonly<Record<string, { path: string }>>)[name]?.path : undefined

/** The key of a folder, under whatever path a configuration names it. */
export const labelKey = (path: string): string => realOf(path)

const decodeLabel = Schema.decodeUnknownEffect(WorkspaceLabel)

const storedLabels = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly path: string; readonly label: unknown }>`SELECT path, label
    FROM choir_control.workspace_labels ORDER BY path`
  return yield* Effect.forEach(rows, ({ label, path }) =>
    Effect.map(Effect.orDie(decodeLabel(label)), (decoded) => ({ path, label: decoded }))
  )
})

/** A row may have a path as config.json writes it, so rows of one folder are joined. */
const allLabels = Effect.map(storedLabels, (rows) => {
  const labels = new Map<string, WorkspaceLabel>()
  for (const { label, path } of rows) {
    const known = labels.get(labelKey(path))
    labels.set(labelKey(path), known === undefined ? label : widened(known, label))
  }
  return labels
})

/** The label of a folder, which no other transaction changes until this one has ended; `undefined` where none is stored. */
const lockedLabel = Effect.fnUntraced(function* (key: string) {
  const sql = yield* SqlClient.SqlClient
  const [known] = yield* sql<{ readonly label: unknown }>`SELECT label FROM choir_control.workspace_labels
    WHERE path = ${key} FOR UPDATE`
  return known === undefined ? undefined : yield* Effect.orDie(decodeLabel(known.label))
})

/** The label of a folder to change, like {@link lockedLabel}; an empty one is stored first where the folder has none. */
const labelToChange = Effect.fnUntraced(function* (key: string) {
  const sql = yield* SqlClient.SqlClient
  const known = yield* lockedLabel(key)
  if (known !== undefined) return known
  yield* sql`INSERT INTO choir_control.workspace_labels (path, label) VALUES (${key}, '{}'::jsonb)
    ON CONFLICT (path) DO NOTHING`
  return (yield* lockedLabel(key)) ?? ({} satisfies WorkspaceLabel)
})

/** Both labels: neither takes anything from the other. */
const widened = (one: WorkspaceLabel, other: WorkspaceLabel): WorkspaceLabel =>
  labelOfOrigin(joinedOrigins(originOfLabel(one), originOfLabel(other)))

/**
 * In the transaction of a session's events: what the session knows of its workspace is in the stored label from here on, also where a person
 * dropped the label meanwhile, or no label was kept when the session learned it. An event that only a later Choir knows may have written anything.
 */
export const labelWorkspace = Effect.fnUntraced(function* (
  path: string | undefined,
  session_id: SessionId,
  state: SessionState,
  isNewer: boolean
) {
  const after = (label: WorkspaceLabel) => {
    const next = labelAfter(label, session_id, state)
    return isNewer ? widened(next, { written_from: [], received: true }) : next
  }
  const knowsOfSome = Object.keys(after({})).length > 0
  // What a command may be copying is in the stored label, of which the session knows nothing itself.
  if (path === undefined || !(knowsOfSome || isCopying(state))) return
  const sql = yield* SqlClient.SqlClient
  const key = labelKey(path)
  const known = knowsOfSome ? yield* labelToChange(key) : yield* lockedLabel(key)
  if (known === undefined) return
  const label = after(known)
  if (canonicalJson(label) === canonicalJson(known)) return
  yield* sql`UPDATE choir_control.workspace_labels SET label = ${canonicalJson(label)}::jsonb WHERE path = ${key}`
})
