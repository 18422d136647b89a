/** Programs of tools on recorded inputs, each in a container of its own beside the agent: the image's, or one that is only proposed. */
import { Context, Effect, Layer, type Schema } from "effect"
import type { ProgramTask, TriedTool } from "#schema/ContainedTrial.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { ToolName } from "#schema/Tool.ts"
import { makeTrialAgent, trialFailed } from "./trialAgent.ts"
import { type Outcome, TrialContainers } from "./TrialContainers.ts"
import { TrialRefused } from "./TrialRefused.ts"
import type { TrialUnfinished } from "./trialSocket.ts"

export interface ProgramTrial {
  readonly agent_id: AgentId
  readonly tool: ToolName
  /** Instead of the image's. */
  readonly program?: ProgramTask["program"]
  /** At most PROGRAM_CALLS_MAX. */
  readonly inputs: ReadonlyArray<Schema.Json>
}

/** The outcome of each call of a program that ended its own container: which of them did it, nobody knows. */
const endedBy = ({ reason }: TrialUnfinished, { inputs }: ProgramTrial): Outcome => ({
  type: "tried_program",
  tried: inputs.map(() => ({ type: "ran", effect: "none", status: "error", summary: reason, duration_ms: 0 }))
})

/** Runs programs of tools. */
export class ProgramTrials extends Context.Service<
  ProgramTrials,
  {
    /**
     * An outcome for each input. The program has an empty workspace, no secret and no network, and a call that acts outside is not made. A written
     * program that ends its container fails on each input, so that it cannot suppress the result of its rehearsal.
     */
    run(trial: ProgramTrial): Effect.Effect<ReadonlyArray<TriedTool>, TrialRefused>
  }
>()("choir/choird/ProgramTrials") {
  static readonly layer = Layer.effect(
    ProgramTrials,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const containers = yield* TrialContainers
  const find = yield* makeTrialAgent

  const run = Effect.fn("ProgramTrials.run")(function* (trial: ProgramTrial) {
    const { agent_id, inputs, program, tool } = trial
    const { image, share: config } = yield* find(agent_id)
    const written = program === undefined ? {} : { program }
    const task = { type: "program" as const, agent_id, config, secrets: {}, tool, inputs, ...written }
    const ran = containers.run({ agent_id, image, files: [], task: (session_id) => ({ ...task, session_id }) })
    const outcome = yield* (
      program === undefined
        ? ran
        : Effect.catchTag(ran, "TrialUnfinished", (error) => Effect.succeed(endedBy(error, trial)))
    ).pipe(Effect.mapError(trialFailed))
    if (outcome.type === "tried_program" && outcome.tried.length === inputs.length) return outcome.tried
    return yield* new TrialRefused({
      kind: "TRIAL_FAILED",
      reason: "the trial's container sent a reply that does not match the request"
    })
  })

  return ProgramTrials.of({ run })
})
