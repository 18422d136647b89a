/** A lane's model calls: room in replication and budget, the prompt, the call, the commit of its output (spec 7.7). */
import { Context, Duration, Effect, Layer } from "effect"
import type { PayloadOf } from "#schema/Event.ts"
import type { LaneId } from "#schema/Ids.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { Arbiter } from "./Arbiter.ts"
import { Budget } from "./Budget.ts"
import { type ChatMessage, type ChatTool, estimateTokens } from "./chatCompletion.ts"
import { type Completion, Llm } from "./Llm.ts"
import type { Room } from "./promptRoom.ts"
import { Replication } from "./Replication.ts"
import type { Exhausted } from "./ToolRunner.ts"

/** Asks a model for a lane and commits what it said. */
export class ModelCalls extends Context.Service<
  ModelCalls,
  {
    /** Asks with the messages that `prompt` makes for the room there is. The output, or its error, is committed after this. */
    ask(
      lane: LaneId,
      purpose: PayloadOf<"ModelOutput">["purpose"],
      model: string,
      tools: ReadonlyArray<ChatTool>,
      prompt: (room: Room) => ReadonlyArray<ChatMessage>
    ): Effect.Effect<void, Exhausted>
  }
>()("choir/agent/ModelCalls") {
  static readonly layer = Layer.effect(
    ModelCalls,
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const budget = yield* Budget
      const llm = yield* Llm
      const replication = yield* Replication
      const settings = yield* AgentSettings

      const announce = (model: string) => (wait: Duration.Duration) =>
        Effect.ignore(
          arbiter.commit({
            type: "Notice",
            text: `The provider of the model "${model}" limits its rate; asking again in ${Duration.format(wait)}.`
          })
        )
      const commit = Effect.fnUntraced(function* (
        lane: LaneId,
        purpose: PayloadOf<"ModelOutput">["purpose"],
        completion: Completion
      ) {
        // An answer that no event can hold becomes an error of the call, as an oversized one does.
        yield* arbiter.commit({ type: "Output", lane, output: { purpose, ...completion } }).pipe(
          Effect.catchTag("Refused", ({ reason }) => {
            const { latency_ms, model, usage } = completion
            const error = { kind: "too_large", message: `the model "${model}": ${reason}` } as const
            const output = { purpose, model, tool_calls: [], finish_reason: "error", usage, latency_ms, error }
            return Effect.ignore(arbiter.commit({ type: "Output", lane, output }))
          })
        )
      })

      return ModelCalls.of({
        ask: Effect.fn("ModelCalls.ask")(function* (lane, purpose, name, tools, prompt) {
          yield* replication.room
          const model = settings.model(name)
          const context_window = model?.context_window ?? 0
          const max_tokens = model?.max_tokens ?? 0
          const described = estimateTokens(JSON.stringify(tools))
          const { event_window } = settings.current().config.memory
          const messages = prompt({ event_window, tokens: Math.max(0, context_window - max_tokens - described) })
          const estimate = estimateTokens(JSON.stringify(messages)) + described + max_tokens
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* budget.reserve(estimate)
              const completion = yield* llm.complete(name, messages, tools, announce(name))
              yield* commit(lane, purpose, completion)
            })
          )
        })
      })
    })
  )
}
