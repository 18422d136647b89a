/** How a program runs that has started others: however its terminal ends, it stops what it started before it ends itself. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import type { Effect } from "effect"

/**
 * Runs the main effect of this process. A terminal that is closed ends it in order, as SIGTERM does, and what is printed into the closed
 * terminal is dropped: an unhandled error would end the process before its programs.
 */
export const runOwner = <A, E extends Error>(main: Effect.Effect<A, E>): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined)
  process.on("SIGHUP", () => process.emit("SIGTERM"))
  NodeRuntime.runMain(main, { disableErrorReporting: true })
}
