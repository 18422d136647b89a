/** What an agent is told of the place that its proposals by branch go to. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EDGE } from "#schema/Ids.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { isControl } from "#src/agent/tools/Tool.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { layerRegistry } from "../../support/toolRegistry.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

/** The form of a proposed branch, as a model gets it for an empty call. */
const described = Effect.fnUntraced(function* (url: string) {
  const { outside, root } = yield* temporaryWorkspace
  for (const scope of ["global", "agent"]) mkdirSync(join(outside, "tools", scope), { recursive: true })
  const layer = layerRegistry({ choir: outside, root, repo: { url, ref: "stable" } }, Layer.mock(ControlPlane, {}))
  const registry = yield* Effect.provide(ToolRegistry, layer)
  const tool = registry.find(EDGE, "choir-propose-repo_change")
  if (tool === undefined || isControl(tool)) return ""
  return (yield* Effect.flip(tool.prepare({}))).problem
})

describe("choir.propose.repo_change", () => {
  it.effect("tells the model where its own repository is, and what its branch is called", () =>
    Effect.gen(function* () {
      const words = yield* described("https://git.example.org/ada.git")
      for (const fact of ["https://git.example.org/ada.git", "ref stable", `proposal/${SESSION}/`])
        assert.include(words, fact)
    })
  )

  it.effect("says that a folder of the host is out of reach", () =>
    Effect.gen(function* () {
      assert.match(yield* described("/srv/ada"), /a folder of choird's host, \/srv\/ada, which you cannot push to/u)
    })
  )
})
