/** The real registry of an image's tools over a workspace, beside an arbiter that nobody drives and parts that say nothing. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ImageTools } from "#src/agent/image/ImageTools.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { APART } from "./apartProgram.ts"
import { SESSION } from "./testing/MemoryControlPlane.ts"
import { settingsOf } from "./testing/TestAgent.ts"

const settings = settingsOf(1)

/** `own` is what the test has of its own: a control plane, skills. */
export const layerRegistry = <A, E, R>(
  { choir, root, ...config }: { readonly choir: string; readonly root: string } & Partial<AgentConfig>,
  own: Layer.Layer<A, E, R>
) =>
  ToolRegistry.layer({ rg: "rg", mailReader: "" }).pipe(
    Layer.provideMerge(ImageTools.layer(choir)),
    Layer.provideMerge(Arbiter.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        EventLog.layer(SESSION),
        AgentSettings.layer({ ...settings, config: { ...settings.config, ...config } }),
        own,
        Layer.mock(Replication, { acked: () => 0, reached: () => Effect.void }),
        Layer.mock(Compactor, {
          request: () => Effect.void,
          shortening: () => ({ now: Effect.void, later: Effect.void })
        }),
        SecretStore.layer,
        Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root }))),
        ProcessRunner.layer({ ownsPidNamespace: false, apart: APART }),
        GitAccess.layerNone,
        Layer.mock(OutsideApi, {})
      )
    ),
    Layer.provideMerge(NodeServices.layer)
  )
