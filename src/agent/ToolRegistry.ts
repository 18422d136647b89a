/** Every tool there is: built-in, global, agent (spec 8.8). It is filled once at start and never changes. */
import { Context, Effect, Layer } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { Arbiter } from "./Arbiter.ts"
import { Compactor } from "./Compactor.ts"
import type { ChatTool } from "./chatCompletion.ts"
import { EventLog } from "./EventLog.ts"
import { ImageTools } from "./ImageTools.ts"
import { type Narrowing, toolTable } from "./offeredTools.ts"
import { requireSecrets } from "./requireSecrets.ts"
import { SkillRegistry } from "./SkillRegistry.ts"
import { type AnyTool, isControl } from "./tools/ControlTool.ts"
import { coreCancel } from "./tools/coreCancel.ts"
import { coreInject } from "./tools/coreInject.ts"
import { coreList } from "./tools/coreList.ts"
import { coreReport } from "./tools/coreReport.ts"
import { coreSpawn } from "./tools/coreSpawn.ts"
import { exec } from "./tools/exec.ts"
import { external } from "./tools/external.ts"
import { fsRead } from "./tools/fsRead.ts"
import { fsSearch } from "./tools/fsSearch.ts"
import { fsWrite } from "./tools/fsWrite.ts"
import { makeAskHost } from "./tools/hostTool.ts"
import { memoryCompact } from "./tools/memoryCompact.ts"
import { memoryQuery } from "./tools/memoryQuery.ts"
import { makeSubmit, proposeTools } from "./tools/propose.ts"
import { skillStart } from "./tools/skillStart.ts"
import { skillTransition } from "./tools/skillTransition.ts"

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
>()("choir/agent/ToolRegistry") {
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
  // No tool of an image has the name of a built-in one, and an agent's own comes after the global one that it replaces (spec 6.5).
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
