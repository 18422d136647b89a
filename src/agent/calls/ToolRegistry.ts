/** Every tool there is: built-in, global, agent. It is filled once at start and never changes. */
import { Context, Effect, Layer } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import type { ChatTool } from "#src/agent/model/chatCompletion.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ImageTools } from "#src/agent/image/ImageTools.ts"
import { type Narrowing, toolTable } from "./offeredTools.ts"
import { requireSecrets } from "#src/agent/control/fetchSecrets.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { type AnyTool, isControl } from "#src/agent/tools/Tool.ts"
import { coreCancel } from "#src/agent/tools/coreCancel.ts"
import { coreInject } from "#src/agent/tools/coreInject.ts"
import { coreList } from "#src/agent/tools/coreList.ts"
import { coreReport } from "#src/agent/tools/coreReport.ts"
import { coreSpawn } from "#src/agent/tools/coreSpawn.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { external } from "#src/agent/tools/external.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsSearch } from "#src/agent/tools/fsSearch.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import { makeAskHost } from "#src/agent/tools/hostTool.ts"
import { memoryCompact } from "#src/agent/tools/memoryCompact.ts"
import { memoryQuery } from "#src/agent/tools/memoryQuery.ts"
import { makeSubmit, proposeTools } from "#src/agent/tools/propose.ts"
import { skillStart } from "#src/agent/tools/skillStart.ts"
import { skillTransition } from "#src/agent/tools/skillTransition.ts"

/** Finds tools for lanes. */
export class ToolRegistry extends Context.Service<
  ToolRegistry,
  {
    /** The tool behind the name that a model used, if the lane may see it. */
    find(lane: LaneId, wireName: string): AnyTool | undefined
    /** What a lane's model is offered; a job's constraints and the state of a skill narrow it. */
    offered(lane: LaneId, narrowing?: Narrowing): ReadonlyArray<ChatTool>
    /** The wire names a lane may use, for the answer to a call that was refused. */
    names(lane: LaneId): ReadonlyArray<string>
    /** Whether models see only status and summary of the tool's results (`prompt_mask`); by the name in either spelling. */
    masked(name: string): boolean
  }
>()("choir/agent/calls/ToolRegistry") {
  /** `rg` is the search program. */
  static readonly layer = (options: { readonly rg: string }) => Layer.effect(ToolRegistry, make(options))
}

/** Another repository or ref is of the agent's next start. */
const placeOf = (settings: AgentSettings["Service"]) => {
  const { config, session_id } = settings.current()
  return { session_id, repo: config.repo }
}

const make = Effect.fnUntraced(function* (options: { readonly rg: string }) {
  const arbiter = yield* Arbiter
  const compactor = yield* Compactor
  const settings = yield* AgentSettings
  const skills = yield* SkillRegistry
  const builtIn: ReadonlyArray<AnyTool> = [
    yield* fsRead,
    yield* fsWrite,
    yield* fsSearch(options.rg),
    yield* exec,
    coreSpawn(settings),
    coreInject,
    coreCancel,
    coreList(arbiter.state),
    memoryQuery(yield* EventLog, arbiter.state, yield* makeAskHost, (name) => isMasked(name)),
    coreReport,
    memoryCompact(compactor.request),
    ...proposeTools(yield* makeSubmit, placeOf(settings)),
    ...(skills.size === 0 ? [] : [skillStart(skills), skillTransition])
  ]
  const tools = new Map<string, AnyTool>(builtIn.map((tool) => [tool.llm.name, tool]))
  // No tool of an image has the name of a built-in one, and an agent's own comes after the global one that it replaces.
  for (const imaged of yield* ImageTools) {
    yield* requireSecrets(imaged)
    const tool = yield* external(imaged.manifest, imaged.executable)
    tools.set(tool.llm.name, tool)
  }
  const { find, named, names, offered } = toolTable([...tools.values()])
  const isMasked = (name: string): boolean => {
    const tool = named(name)
    return tool !== undefined && !isControl(tool) && tool.masked === true
  }
  return ToolRegistry.of({ find, offered, names, masked: isMasked })
})
