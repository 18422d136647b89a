/** Golden histories: lines as `choirctl session events --json` prints them, and beside them the state that they fold to (R69). */
import { Result, type Schema } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { type Replayed, replay, replayStart, type StoredEvent } from "#src/choird/sessions/storedEvents.ts"
import { canonicalJson } from "#src/shared/canonicalJson.ts"
import { encodeState } from "#src/shared/session/snapshot.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** What was recorded of a history. */
export interface GoldenRecord {
  readonly session_id: SessionId
  readonly fold_version: number
  readonly events: number
  readonly head: string
  readonly state: Schema.Json
}

/** The lines as choird has them stored: canonical texts and digests. */
export const readGolden = (lines: string): ReadonlyArray<StoredEvent> =>
  lines
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { hash, ...event } = JSON.parse(line) as { readonly rev: number; readonly hash: string }
      return { rev: event.rev, canonical: canonicalJson(event), hash: Buffer.from(hash, "hex") }
    })

/** Proves the chain and folds it, as choird does after a restart. */
export const foldGolden = (session_id: SessionId, rows: ReadonlyArray<StoredEvent>): Replayed => {
  let at = replayStart(session_id)
  for (const row of rows)
    at = Result.getOrThrowWith(replay(at, row), ({ reason, rev }) => new Error(`event ${rev}: ${reason}`))
  return at
}

/** Files in the order of their paths, since a map has none of its own. */
const ordered = (key: string, value: unknown): unknown =>
  key === "seen" && Array.isArray(value) ? value.toSorted(([a], [b]) => (a < b ? -1 : 1)) : value

/** The state as a snapshot holds it. */
export const stateOf = (state: SessionState): Schema.Json =>
  JSON.parse(JSON.stringify(JSON.parse(Result.getOrThrow(encodeState(state))), ordered))
