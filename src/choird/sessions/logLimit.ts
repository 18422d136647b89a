/**
 * The limit of one session's log (`retention.session_mb`). At the limit the agent is asked to stop; up to LOG_FULL_ROOM_BYTES more are
 * taken, so that an agent which does stop loses nothing.
 */
import type { RetentionConfig } from "#schema/Retention.ts"
import { bytesText, MIB } from "#src/shared/text/bytesText.ts"

/** Room above the limit for the events that an agent sends before it knows, those that it holds back, and its goodbye. */
export const LOG_FULL_ROOM_BYTES = 64 * MIB

type Limit = Pick<RetentionConfig, "session_mb">

/** Why a session takes no further turn; undefined for one that is below its limit. */
export const logFull = (log_bytes: number, { session_mb }: Limit): string | undefined =>
  log_bytes < session_mb * MIB
    ? undefined
    : `its session has reached its ${bytesText(session_mb * MIB)} of events (LOG_FULL, retention.session_mb); the next start begins a new session`

/** Whether events of this size may still be stored. */
export const hasRoom = (log_bytes: number, added_bytes: number, { session_mb }: Limit): boolean =>
  log_bytes + added_bytes <= session_mb * MIB + LOG_FULL_ROOM_BYTES
