/** The figures of a siege: times of windows in which the hostile agents rest and attack in turn, and what choird takes meanwhile. */
import { readFileSync } from "node:fs"
import { Effect, Schedule } from "effect"
import type { Turn } from "./honest.ts"
import type { Stages } from "./stages.ts"

/** A stretch of time with the same hostile agents; none in a quiet one. */
export interface Window {
  readonly from_ms: number
  readonly until_ms: number
  /** The name of one kind, or what {@link QUIET} and {@link ALL} say. */
  readonly of: string
}
export const QUIET = "quiet"
export const ALL = "all"

export interface Times {
  readonly turns: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly most_ms: number
}

const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN

const within = (windows: ReadonlyArray<Window>, of: string) => {
  const mine = windows.filter((window) => window.of === of)
  return ({ began_ms }: { readonly began_ms: number }) =>
    mine.some(({ from_ms, until_ms }) => began_ms >= from_ms && began_ms < until_ms)
}

/** The median and the slowest hundredth of each stage of an answer, in ms. */
export const stageTimes = (stages: ReadonlyArray<Stages>, windows: ReadonlyArray<Window>, of: string): string => {
  const mine = stages.filter(within(windows, of))
  const names = ["sent_ms", "heard_ms", "worked_ms", "shown_ms"] as const
  return names
    .map((name) => {
      const sorted = mine.map((each) => each[name]).sort((a, b) => a - b)
      return `${name.slice(0, -3)} ${quantile(sorted, 0.5).toFixed(0)}/${quantile(sorted, 0.99).toFixed(0)}`
    })
    .join(", ")
}

/** Of the messages that were sent in windows of one kind, whenever they were answered. */
export const timesOf = (turns: ReadonlyArray<Turn>, windows: ReadonlyArray<Window>, of: string): Times => {
  const sorted = turns
    .filter(within(windows, of))
    .map(({ took_ms }) => took_ms)
    .sort((a, b) => a - b)
  return {
    turns: sorted.length,
    p50_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
    most_ms: sorted.at(-1) ?? Number.NaN
  }
}

/** Resident memory of a process in MiB; nothing when it has ended. */
const rssOf = (pid: number): number => {
  try {
    return Number(/^VmRSS:\s+(\d+) kB/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
  } catch {
    return 0
  }
}

const TICKS_A_SECOND = 100

/** Seconds of a processor that a process has taken; nothing when it has ended. */
export const cpuOf = (pid: number): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND
  } catch {
    return 0
  }
}

const SAMPLE_MS = 200

/** The most memory that a process took in each kind of window. */
export const watchMemory = Effect.fnUntraced(function* (pid: number, now: () => string) {
  const most = new Map<string, number>()
  const look = Effect.sync(() => {
    const of = now()
    most.set(of, Math.max(most.get(of) ?? 0, rssOf(pid)))
  })
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(SAMPLE_MS)))
  return most
})
