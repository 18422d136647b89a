/** The registry of a trial: an agent's tools with their own checks of inputs and their locks, whose calls run in another way. */
import { Effect, Layer } from "effect"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { type AnyTool, isControl, type PreparedCall, type Tool } from "#src/agent/tools/Tool.ts"

/** The call that is made instead of a prepared one; `undefined` leaves it as it is. Tools that only commit are never replaced. */
export type Replace = (tool: Tool, prepared: PreparedCall, input: unknown) => PreparedCall | undefined

const replaced = (tool: AnyTool, replace: Replace): AnyTool =>
  isControl(tool)
    ? tool
    : {
        ...tool,
        prepare: (input, lane) =>
          Effect.map(tool.prepare(input, lane), (prepared) => replace(tool, prepared, input) ?? prepared)
      }

export const layerReplaced =
  (replace: Replace) =>
  <E, R>(registry: Layer.Layer<ToolRegistry, E, R>) =>
    Layer.effect(
      ToolRegistry,
      Effect.map(ToolRegistry, (tools) =>
        ToolRegistry.of({
          ...tools,
          find: (lane, name) => {
            const tool = tools.find(lane, name)
            return tool === undefined ? undefined : replaced(tool, replace)
          }
        })
      )
    ).pipe(Layer.provide(registry))
