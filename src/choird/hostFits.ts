/** Whether this host has what choird needs, asked before anything is opened: later failures would have other names. */
import { Clock, Effect, Runtime, Schema } from "effect"
import {
  clockProblem,
  fileSizeProblem,
  homeWriteProblem,
  type HostProblem,
  longHomeProblem,
  openFilesProblem,
  procProblem,
  temporaryProblem
} from "#src/shared/files/hostProblems.ts"

/** choird cannot work on this host as it is. */
export class HostUnfit extends Schema.TaggedError<HostUnfit>()("HostUnfit", {
  problem: Schema.String,
  fix: Schema.String,
  /** Whether it passes by itself, as a clock that is not set yet after a start of the machine. */
  passes: Schema.Boolean
}) {
  override get [Runtime.errorExitCode]() {
    return this.passes ? 75 : 78
  }
  override get message() {
    return `choird cannot start: ${this.problem}. To fix it: ${this.fix}`
  }
}

const refused = (problem: HostProblem | undefined, passes = false) =>
  problem === undefined
    ? Effect.void
    : Effect.fail(new HostUnfit({ problem: problem.problem, fix: problem.fix, passes }))

/** Refuses a host that lacks something without which nothing works. @param home its real path. */
export const hostFits = Effect.fn("hostFits")(function* (home: string) {
  yield* refused(procProblem())
  yield* refused(longHomeProblem(home))
  yield* refused(openFilesProblem())
  yield* refused(fileSizeProblem())
  yield* refused(homeWriteProblem(home))
  yield* refused(temporaryProblem())
  yield* refused(clockProblem(yield* Clock.currentTimeMillis), true)
})
