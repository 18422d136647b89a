/** Which events stay in memory however old they are: what the state names, and of each window what a prompt could hold. */
import { namedRevs, windowsOf } from "#src/shared/session/namedRevs.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { EventLog } from "./EventLog.ts"

/** Canonical bytes of a lane's window that stay in memory however old they are; no prompt holds more. */
const RESIDENT_WINDOW_BYTES_MAX = 4 * 1024 * 1024

/** The newest of a window, up to RESIDENT_WINDOW_BYTES_MAX. */
const newest = (window: ReadonlyArray<number>, bytesOf: (rev: number) => number): ReadonlyArray<number> => {
  let left = RESIDENT_WINDOW_BYTES_MAX
  const from = window.findLastIndex((rev) => {
    left -= bytesOf(rev)
    return left < 0
  })
  return window.slice(from + 1)
}

export const residentRevs = (state: SessionState, log: EventLog["Service"]): ReadonlySet<number> => {
  const bytesOf = (rev: number) => JSON.stringify(log.find(rev) ?? null).length
  return new Set([...namedRevs(state), ...windowsOf(state).flatMap((window) => newest(window, bytesOf))])
}
