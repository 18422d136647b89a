/**
 * One start of an agent in a simulated process: the program of `src/agent/main.ts` with its real session, arbiter, locks, lanes,
 * budgets, replication, RPC client and model client, over the simulated network and with simulated tools.
 */
import { Effect, Layer, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { coreLane, type SessionId } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { Budget } from "#src/agent/model/Budget.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { Environment, ofPlace } from "#src/agent/model/prompt/Environment.ts"
import { fetchSecrets } from "#src/agent/control/fetchSecrets.ts"
import { ImageTexts } from "#src/agent/image/ImageTexts.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { LockManager } from "#src/agent/calls/LockManager.ts"
import { jobTools, ToolRegistry, toolTable } from "#src/agent/calls/ToolRegistry.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { AnswerVoice } from "#src/agent/session/AnswerVoice.ts"
import { runSession } from "#src/agent/session/Session.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { layerModels, layerRecovered } from "#src/agent/session/sessionLayers.ts"
import { ProfileRegistry } from "#src/agent/image/ProfileRegistry.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { textsOf as partTexts } from "#src/agent/model/partSizes.ts"
import { type Part, TokenCount } from "#src/agent/model/TokenCount.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import type { AnyTool } from "#src/agent/tools/Tool.ts"
import { coreCancel, coreInject, coreList, coreReport, coreSpawn, coreWriteback } from "#src/agent/tools/coreTools.ts"
import { makeFindExcerpts } from "#src/agent/tools/excerpts.ts"
import { memoryCompact, memoryDelta } from "#src/agent/tools/memoryTools.ts"
import { proposeTools } from "#src/agent/tools/propose.ts"
import { skillTools } from "#src/agent/tools/skillTools.ts"
import { AGENT } from "./Database.ts"
import type { Process } from "./Kernel.ts"
import type { Server, Wire } from "./Network.ts"
import { runtimeOf } from "./SimRuntime.ts"
import { simTools } from "./tools.ts"
import type { World } from "./World.ts"

/** What one start of the agent is told by its environment, and which start it is. */
export interface AgentIdentity {
  /** Counts all starts of all sessions. */
  readonly number: number
  readonly session_id: SessionId
  readonly epoch: number
  readonly token: string
}

/** The services of a running agent that invariants look into. */
export interface Probe {
  readonly agent: AgentIdentity
  readonly process: Process
  readonly arbiter: Arbiter["Service"]
  readonly log: EventLog["Service"]
  readonly locks: LockManager["Service"]
  readonly replication: Replication["Service"]
  readonly settings: AgentSettings["Service"]
}

const HASH = "0".repeat(64)

/** Where it works, by its own account; one for all starts, since a formatter of dates takes longer than a start. */
const ENVIRONMENT = ofPlace({
  workspace: "/workspace",
  git: { branch: "main" },
  os: "linux x64",
  shell: "bash",
  time_zone: "UTC",
  hasAgentsFile: false
})

const introduction = (session_id: SessionId) => ({
  agent_id: AGENT,
  session_id,
  image_version: "sim",
  agent_version: "0.1.0",
  tool_manifest_hash: HASH,
  skill_manifest_hash: HASH
})

const textsOf = (parts: ReadonlyArray<Part>): ReadonlyArray<string> =>
  parts.flatMap((part) => (typeof part === "string" ? [part] : partTexts(part)))

/** Counts by length; the vocabulary of the real one is a file that the host's event loop would read. */
const tokens = Layer.succeed(
  TokenCount,
  TokenCount.of({
    count: (parts) => Effect.sync(() => textsOf(parts).reduce((total, text) => total + Math.ceil(text.length / 4), 0)),
    certainlyBelow: (parts, most) => textsOf(parts).reduce((total, text) => total + Buffer.byteLength(text), 0) < most,
    observe: () => undefined,
    factor: () => 1
  })
)

const registry = (world: World, agent: AgentIdentity) =>
  Layer.effect(
    ToolRegistry,
    Effect.gen(function* () {
      const profiles = yield* ProfileRegistry
      const all: ReadonlyArray<AnyTool> = [
        yield* coreSpawn(
          () => jobTools(all),
          yield* makeFindExcerpts(
            () => false,
            (job_name, allowed) => offeredOf(offered(coreLane(job_name), allowed))
          )
        ),
        coreInject,
        coreCancel,
        yield* coreList,
        coreReport,
        ...(profiles.size === 0 ? [] : [coreWriteback]),
        yield* memoryCompact,
        memoryDelta,
        ...(world.setup.proposes ? yield* proposeTools : []),
        ...(yield* skillTools),
        ...simTools(world, agent)
      ]
      const { find, names, offered } = toolTable(all)
      return ToolRegistry.of({ find, names, offered, masked: () => false })
    })
  )

const session = Effect.fnUntraced(function* (
  world: World,
  agent: AgentIdentity,
  process: Process,
  models: HttpClient.HttpClient
) {
  const control = yield* ControlPlane
  const introduced = introduction(agent.session_id)
  const first = yield* control.hello(introduced)
  const values = yield* fetchSecrets(first.config, new Set())
  const image = Layer.merge(
    Layer.succeed(SkillRegistry, world.setup.skills),
    Layer.succeed(ProfileRegistry, world.setup.profiles)
  )
  const recovered = layerRecovered(introduced, first, values, image)
  const guards = Layer.mergeAll(
    Replication.layer,
    Budget.layer,
    Llm.layer.pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, models))),
    tokens,
    Pictures.layerNone,
    AnswerVoice.layerNone,
    Layer.succeed(ImageTexts, { user: "", soul: "", soulCore: "" }),
    Layer.succeed(Environment, ENVIRONMENT)
  ).pipe(Layer.provideMerge(recovered))
  const tools = registry(world, agent).pipe(Layer.provideMerge(layerModels(guards)))
  const probe = Layer.effectDiscard(
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const seen: Probe = {
        agent,
        process,
        arbiter,
        log: yield* EventLog,
        locks: yield* LockManager,
        replication: yield* Replication,
        settings: yield* AgentSettings
      }
      world.invariants.recovered(seen)
      yield* arbiter.onCommit((events) => world.invariants.committed(seen, events))
    })
  )
  const runners = Layer.mergeAll(ToolRunner.layer, probe).pipe(Layer.provideMerge(tools))
  return yield* Effect.provide(runSession, runners)
})

/** Starts the agent; `ended` hears its exit code. */
export const startAgent = (
  world: World,
  agent: AgentIdentity,
  process: Process,
  ways: { readonly choird: readonly [Wire, Server]; readonly provider: readonly [Wire, Server] },
  ended: (code: number) => void
): void => {
  const { network, note } = world
  const runtime = runtimeOf(world.kernel, process, world.draw(`scheduler ${agent.number}`), note)
  const plane = ControlPlane.layer(agent.session_id, Redacted.make(agent.token)).pipe(
    Layer.provide(Layer.succeed(HttpClient.HttpClient, network.client(process, ...ways.choird)))
  )
  const program = Effect.provide(session(world, agent, process, network.client(process, ...ways.provider)), plane)
  runtime.start(
    program.pipe(
      Effect.matchCause({
        onSuccess: (reason) => {
          note(`${process.name} ended: ${reason}`)
          ended(0)
        },
        onFailure: (cause) => {
          world.invariants.agentFailed(agent, cause)
          ended(1)
        }
      })
    )
  )
}
