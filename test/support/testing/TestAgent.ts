/**
 * An agent in one process: the real arbiter, locks, lanes, budgets and replication, over a control plane in memory, a scripted
 * model and tools that are functions.
 */
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { type AgentConfig } from "#schema/AgentConfig.ts"
import { Config } from "#schema/Config.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import type { InitHello } from "#schema/AgentApi.ts"
import { AgentId, coreLane, ResourceName } from "#schema/Ids.ts"
import { ToolName } from "#schema/Tool.ts"
import { AgentSettings, type Settings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { Budget } from "#src/agent/model/Budget.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { Environment, ofPlace, type Place } from "#src/agent/model/prompt/Environment.ts"
import { ImageTexts } from "#src/agent/image/ImageTexts.ts"
import type { Llm } from "#src/agent/model/Llm.ts"
import { LockManager } from "#src/agent/calls/LockManager.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { Mailbox } from "#src/agent/session/Mailbox.ts"
import { jobTools, ToolRegistry, toolTable } from "#src/agent/calls/ToolRegistry.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { AnswerVoice } from "#src/agent/session/AnswerVoice.ts"
import { runSession } from "#src/agent/session/Session.ts"
import { layerModels, resumeSession } from "#src/agent/session/sessionLayers.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { type ProfileBook, ProfileRegistry } from "#src/agent/image/ProfileRegistry.ts"
import { type SkillBook, SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { makeFindExcerpts } from "#src/agent/tools/excerpts.ts"
import { type AnyTool, isControl, type PreparedCall, type Tool } from "#src/agent/tools/Tool.ts"
import { coreCancel, coreInject, coreList, coreReport, coreSpawn, coreWriteback } from "#src/agent/tools/coreTools.ts"
import { proposeTools } from "#src/agent/tools/propose.ts"
import { skillTools } from "#src/agent/tools/skillTools.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { type MemoryControlPlane, SESSION } from "./MemoryControlPlane.ts"
import { layerScriptedModel, type Script } from "./ScriptedModel.ts"

const decodeConfig = Schema.decodeUnknownSync(Config)

/** An agent's configuration with the defaults of config.json. */
export const agentConfig = (budgets: Partial<AgentConfig["budgets"]> = {}): AgentConfig => {
  const config = decodeConfig({
    global_repo: { url: "/global" },
    models: { small: { provider: "test", model: "small", endpoint: "http://127.0.0.1:1/v1", max_tokens: 4096 } }
  })
  return {
    llm: ResourceName.make("small"),
    core_llm: ResourceName.make("small"),
    models: config.models,
    budgets: { ...config.budgets, ...budgets },
    memory: config.memory,
    jobs: config.jobs,
    approvals: config.approvals,
    heartbeat_interval_ms: config.heartbeat_interval_ms,
    rate_limit_retry_ms: config.rate_limit_retry_ms
  }
}

/** What an agent of this epoch is told at INIT_HELLO. */
export const settingsOf = (epoch: number, config: AgentConfig = agentConfig()): Settings => {
  const name = ResourceName.make
  const resource_bindings = { workspace: name("ws"), llm: name("small"), core_llm: name("small"), dm: name("me") }
  return { session_id: SESSION, epoch, resource_bindings, config_version: 1, config }
}

/** A tool of a test: what it does, how it counts, and what it locks. */
export const testTool = (
  name: string,
  run: PreparedCall["run"],
  options: Partial<
    Pick<Tool, "effect" | "keepsOwn" | "lanes"> & Pick<PreparedCall, "besideJobs" | "files" | "locks" | "timeout_ms">
  > = {}
): Tool => ({
  llm: { name: ToolName.make(name), description: name, input_schema: { type: "object" } },
  effect: options.effect ?? "workspace",
  lanes: options.lanes ?? "both",
  ...(options.keepsOwn === undefined ? {} : { keepsOwn: options.keepsOwn }),
  prepare: () =>
    Effect.succeed({
      locks: options.locks ?? [],
      timeout_ms: options.timeout_ms ?? 60_000,
      besideJobs: options.besideJobs === true,
      ...(options.files === undefined ? {} : { files: options.files }),
      run
    })
})

/** The tools of a test, or how they are made of what their agent has. */
export type TestTools =
  | ReadonlyArray<Tool>
  | Effect.Effect<ReadonlyArray<Tool>, never, AgentSettings | Arbiter | EventLog | SecretStore>

const layerTools = (tools: TestTools) =>
  Layer.effect(
    ToolRegistry,
    Effect.gen(function* () {
      const skills = yield* SkillRegistry
      const profiles = yield* ProfileRegistry
      const isMasked = (name: string): boolean => {
        const tool = named(name)
        return tool !== undefined && !isControl(tool) && tool.masked === true
      }
      const all: ReadonlyArray<AnyTool> = [
        yield* coreSpawn(
          () => jobTools(all),
          yield* makeFindExcerpts(isMasked, (job_name, allowed) => offeredOf(offered(coreLane(job_name), allowed)))
        ),
        coreInject,
        coreCancel,
        yield* coreList,
        coreReport,
        ...(profiles.size === 0 ? [] : [coreWriteback]),
        ...(yield* proposeTools),
        ...(yield* skillTools),
        ...(Effect.isEffect(tools) ? yield* tools : tools)
      ]
      const { find, named, names, offered } = toolTable(all)
      // Without skills nothing depends on what is offered, and prompts are as long as their messages.
      return ToolRegistry.of({ find, names, offered: skills.size === 0 ? () => [] : offered, masked: isMasked })
    })
  )

/** The place of an agent in tests. */
export const PLACE: Place = {
  workspace: "/workspace",
  git: { branch: "main" },
  os: "linux x64",
  shell: "bash",
  time_zone: "UTC",
  hasAgentsFile: false
}

/** What {@link runSession} needs around an arbiter, its locks and its control plane: a model, tools and no identity texts. */
export const layerLanes = (
  options: Pick<AgentOptions, "environment" | "script" | "llm" | "pictures" | "tools" | "voice">
) => {
  const around = Layer.mergeAll(
    Mailbox.layer,
    Replication.layer,
    Budget.layer,
    TokenCount.layer,
    options.llm ?? layerScriptedModel(options.script),
    Layer.succeed(ImageTexts, { user: "", soul: "", soulCore: "" }),
    options.pictures ?? Pictures.layerNone,
    options.voice ?? AnswerVoice.layerNone,
    options.environment ?? Layer.succeed(Environment, ofPlace(PLACE))
  )
  return ToolRunner.layer.pipe(
    Layer.provideMerge(Layer.provideMerge(layerTools(options.tools ?? []), layerModels(around)))
  )
}

const HASH = "0".repeat(64)
const INTRODUCTION: InitHello = {
  agent_id: AgentId.make("test"),
  session_id: SESSION,
  image_version: "test",
  agent_version: "test",
  tool_manifest_hash: HASH,
  skill_manifest_hash: HASH
}

export interface AgentOptions {
  readonly plane: MemoryControlPlane
  readonly script: Script
  /** A client of models in the place of the script. */
  readonly llm?: Layer.Layer<Llm>
  /** None where absent. */
  readonly pictures?: Layer.Layer<Pictures>
  readonly voice?: Layer.Layer<AnswerVoice>
  readonly tools?: TestTools
  /** The place itself instead of {@link PLACE}. */
  readonly environment?: Layer.Layer<Environment>
  readonly skills?: SkillBook
  readonly epoch?: number
  readonly profiles?: ProfileBook
  readonly config?: AgentConfig
  /** In the place of the one that compacts. */
  readonly compactor?: Compactor["Service"]
  /** Sees each commit of this life, before replication does. */
  readonly onCommit?: () => void
}

/** One life of an agent: it takes over what the plane has and runs until it ends or is interrupted, which is its crash. */
export const runAgent = (options: AgentOptions) => {
  const { config = agentConfig(), epoch = 1, onCommit = () => undefined, plane } = options
  const restored = Layer.effectDiscard(
    Effect.andThen(
      resumeSession(INTRODUCTION, plane.recovery(epoch)),
      Effect.flatMap(Arbiter, (arbiter) => arbiter.onCommit(onCommit))
    )
  )
  const settings = AgentSettings.layer(settingsOf(epoch, config))
  const authority = restored.pipe(
    Layer.provideMerge(Layer.mergeAll(Arbiter.layer, LockManager.layer, SecretStore.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        EventLog.layer(SESSION),
        settings,
        plane.layer(epoch),
        Layer.succeed(SkillRegistry, options.skills ?? new Map()),
        Layer.succeed(ProfileRegistry, options.profiles ?? new Map())
      )
    )
  )
  const { compactor } = options
  const session = compactor === undefined ? runSession : Effect.provideService(runSession, Compactor, compactor)
  return Effect.provide(session, layerLanes(options).pipe(Layer.provideMerge(authority)))
}

/** Events of one type, in order. */
export const ofType = <T extends ChoirEvent["event_type"]>(events: ReadonlyArray<ChoirEvent>, type: T) =>
  events.filter((event): event is Extract<ChoirEvent, { event_type: T }> => event.event_type === type)

/** What the user was told beside notices. */
export const spoken = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "AgentMessage").filter(({ payload }) => payload.kind !== "notice")

/** Whether every message has its reply and nothing runs or waits. */
export const quiet = (state: SessionState): boolean =>
  state.edge.state === "EDGE_IDLE" && state.cores.size === 0 && state.reports.length === 0

/** Time passes by itself wherever nothing else happens. */
export const ticking = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust("25 millis"), Effect.yieldNow)))
