/** A bound on the size of a state's written form, known without writing it: a text of hundreds of megabytes would be made before anybody could refuse it. */
import type { CoreLane, EdgeLane, SessionState } from "./State.ts"

/** Characters that JSON writes as they are, in one byte each. */
const PLAIN = /^[ !#-[\]-~]*$/u

const textBytes = (text: string): number =>
  PLAIN.test(text) ? text.length + 2 : Buffer.byteLength(JSON.stringify(text))

/** A container's bytes, with its brackets and commas. */
const around = (count: number, inside: number): number => inside + Math.max(2, count + 1)

const bytesOfParts = (value: object): number => {
  let inside = 0
  if (value instanceof Map) {
    for (const [key, held] of value) inside += around(2, jsonBytes(key) + jsonBytes(held))
    return around(value.size, inside)
  }
  if (Array.isArray(value)) {
    for (const held of value) inside += jsonBytes(held)
    return around(value.length, inside)
  }
  let count = 0
  for (const key in value) {
    inside += key.length + 3 + jsonBytes((value as Record<string, unknown>)[key])
    count += 1
  }
  return around(count, inside)
}

/** Sizes that were found before. States are never changed and share their parts, so that an event costs only what it made. */
const found = new WeakMap<object, number>()

const remembering = <A extends object>(value: A, bytesOf: (value: A) => number): number => {
  const known = found.get(value)
  if (known !== undefined) return known
  const bytes = bytesOf(value)
  found.set(value, bytes)
  return bytes
}

/** Bytes of a part of a state as `snapshot.ts` writes it: undefined is null, a map its entries. */
export const jsonBytes = (value: unknown): number => {
  switch (typeof value) {
    case "string":
      return textBytes(value)
    case "object":
      return value === null ? 4 : remembering(value, bytesOfParts)
    default:
      return value === undefined ? 4 : `${value as number | boolean}`.length
  }
}

/** At least what the numbers, the ids and the names of all fields of a lane take, and those of a session. Each has a pattern or a limit of its own. */
const LANE_REST_BYTES = 2048
const SESSION_REST_BYTES = 2048

/** Digests as the versions of files, and what is around a path and its version. */
const FILE_REST_BYTES = 64 + 6

/** The longest lists of a state get code of their own, since each event of a lane makes them again. */
const bytesOfFiles = (seen: EdgeLane["seen"]): number => {
  let bytes = 2
  for (const path of seen.keys()) bytes += textBytes(path) + FILE_REST_BYTES
  return bytes
}

const bytesOfWindow = (window: EdgeLane["window"]): number => {
  let [bytes, digits, next] = [2, 1, 10]
  for (const rev of window) {
    for (; rev >= next; next *= 10) digits += 1
    bytes += digits + 1
  }
  return bytes
}

const partsOfLane = (lane: EdgeLane | CoreLane): number => {
  const { calls, environment, repetitions, seen, skill, sources, summary, window, written } = lane
  const files = remembering(seen, bytesOfFiles) + remembering(window, bytesOfWindow)
  const lists = [calls, repetitions, sources, summary, written]
  const shared = lists.reduce((total, list) => total + jsonBytes(list), LANE_REST_BYTES + files)
  const memory = shared + jsonBytes(environment) + jsonBytes(skill)
  if (!("job_id" in lane)) return memory + jsonBytes(lane.parked)
  const { cancelled, in_skill, model, work } = lane
  return memory + jsonBytes(cancelled) + jsonBytes(in_skill) + jsonBytes(model) + jsonBytes(work)
}

export const laneBytes = (lane: EdgeLane | CoreLane): number => remembering(lane, partsOfLane)

/** At least the bytes of a state as JSON; a few kilobytes above them for each lane. */
export const stateBytes = (state: SessionState): number => {
  const { cores, edge, message_steps, past_sources, reports, resumable, signals } = state
  let bytes = SESSION_REST_BYTES + laneBytes(edge)
  for (const core of cores.values()) bytes += laneBytes(core)
  for (const { core } of resumable.values()) bytes += laneBytes(core)
  const lists = [message_steps, past_sources, reports, signals, state.workspace_files, state.workspace_sources]
  return lists.reduce((total, list) => total + jsonBytes(list), bytes)
}
