/**
 * Every tool of an agent: built-in, global and its own. The registry is filled once at start and never changes. The same rule decides for
 * every registry which tools a lane may see and what its model is offered.
 */
import { Context, Effect, Layer, type Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { coreLane, type JobName, jobOf, type LaneId } from "#schema/Ids.ts"
import { offeredName, shownName, ToolName, toWireName } from "#schema/Tool.ts"
import type { EventOf } from "#schema/Event.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import { ImageTools } from "#src/agent/image/ImageTools.ts"
import { requireSecrets } from "#src/agent/control/fetchSecrets.ts"
import { type AnyTool, isControl } from "#src/agent/tools/Tool.ts"
import { coreCancel, coreInject, coreList, coreReport, coreSpawn, coreWriteback } from "#src/agent/tools/coreTools.ts"
import { emailCheck } from "#src/agent/tools/emailCheck.ts"
import { emailReceive } from "#src/agent/tools/emailReceive.ts"
import { emailSend } from "#src/agent/tools/emailSend.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { makeFindExcerpts } from "#src/agent/tools/excerpts.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { external } from "#src/agent/tools/external.ts"
import { fsEdit } from "#src/agent/tools/fsEdit.ts"
import { fsFind } from "#src/agent/tools/fsFind.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsSearch } from "#src/agent/tools/fsSearch.ts"
import { fsSend } from "#src/agent/tools/fsSend.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import { memoryDelete, memoryUpsert } from "#src/agent/tools/longTermMemory.ts"
import { planTools } from "#src/agent/tools/plans.ts"
import { memoryCompact, memoryDelta, memoryQuery } from "#src/agent/tools/memoryTools.ts"
import { proposeTools } from "#src/agent/tools/propose.ts"
import { webBrowse } from "#src/agent/tools/webBrowse.ts"
import { webFetch } from "#src/agent/tools/webFetch.ts"
import { skillTools } from "#src/agent/tools/skillTools.ts"
import { notionQuery } from "#src/agent/tools/notionQuery.ts"
import { ttsSpeak } from "#src/agent/tools/ttsSpeak.ts"
import { webSearch } from "#src/agent/tools/webSearch.ts"
import type { JobTool } from "#src/agent/arbiter/Command.ts"
import { ProfileRegistry } from "#src/agent/image/ProfileRegistry.ts"
import { CORE_WRITEBACK } from "#src/shared/session/writtenBack.ts"
import { SKILL_TRANSITION } from "#src/agent/arbiter/decideSkills.ts"
import { isCut } from "#src/agent/arbiter/finalWords.ts"

/** The tools that each lane may see, by the names that models use. */
export class ToolRegistry extends Context.Service<
  ToolRegistry,
  {
    /** The tool behind the name that a model used, if the lane may see it. */
    find(lane: LaneId, wireName: string): AnyTool | undefined
    /**
     * The tools that a lane's model is offered, the same in each of its calls: a job's own constraint narrows them, empty for none. What a step
     * of a skill does not allow is offered and refused.
     */
    offered(lane: LaneId, allowed?: ReadonlyArray<string>): ReadonlyArray<Tool>
    /** The wire names a lane may use, for the answer to a call that was refused. */
    names(lane: LaneId): ReadonlyArray<string>
    /** Whether models see only status and summary of the tool's results (`prompt_mask`); by the name in either spelling. */
    masked(name: string): boolean
  }
>()("choir/agent/ToolRegistry") {
  static readonly layer = (programs: ToolPrograms) => Layer.effect(ToolRegistry, make(programs))
}

/** The paths of programs that tools start. */
export interface ToolPrograms {
  /** The search program. */
  readonly rg: string
  /** The program that reads one mail; nobody starts it where the agent has no e-mail account. */
  readonly mailReader: string
}

/** The tools of the resources that the agent is bound to when it starts. Others would take room in each of its prompts for nothing. */
const boundTools = Effect.fnUntraced(function* (
  { email, notion, search, voice }: AgentConfig,
  { mailReader }: ToolPrograms
) {
  const tools: ReadonlyArray<AnyTool> = [
    ...(search === undefined ? [] : [yield* webSearch]),
    ...(notion === undefined ? [] : [yield* notionQuery]),
    ...(voice === undefined ? [] : [yield* ttsSpeak]),
    ...(email === undefined ? [] : [yield* emailSend, yield* emailReceive(mailReader), yield* emailCheck])
  ]
  return tools
})

/** The tools of the web that choird has for this agent. */
const webTools = Effect.fnUntraced(function* ({ web }: AgentConfig) {
  if (web === undefined || web === "off") return []
  return web === "fetch" ? [yield* webFetch] : [yield* webFetch, yield* webBrowse]
})

const make = Effect.fnUntraced(function* (programs: ToolPrograms) {
  const { config } = (yield* AgentSettings).current()
  const profiles = yield* ProfileRegistry
  // These look into the table of all tools, which is there when a tool runs.
  const isMasked = (name: string): boolean => {
    const tool = named(name)
    return tool !== undefined && !isControl(tool) && tool.masked === true
  }
  const offeredTo = (job_name: JobName, allowed: ReadonlyArray<string>) =>
    offeredOf(offered(coreLane(job_name), allowed))
  const builtIn: ReadonlyArray<AnyTool> = [
    yield* fsRead,
    yield* fsWrite,
    yield* fsEdit,
    yield* fsSearch(programs.rg),
    yield* fsFind(programs.rg),
    yield* fsSend,
    yield* exec,
    yield* coreSpawn(() => jobTools([...tools.values()]), yield* makeFindExcerpts(isMasked, offeredTo)),
    coreInject,
    coreCancel,
    yield* coreList,
    yield* memoryQuery(isMasked),
    yield* memoryUpsert,
    yield* memoryDelete,
    ...(yield* planTools),
    coreReport,
    ...(profiles.size === 0 ? [] : [coreWriteback]),
    yield* memoryCompact,
    memoryDelta,
    ...(yield* webTools(config)),
    ...(yield* proposeTools),
    ...(yield* skillTools),
    ...(yield* boundTools(config, programs))
  ]
  const tools = new Map<string, AnyTool>(builtIn.map((tool) => [tool.llm.name, tool]))
  // No tool of an image has the name of a built-in one, and an agent's own comes after the global one that it replaces.
  for (const imaged of yield* ImageTools) {
    yield* requireSecrets(imaged)
    const tool = yield* external(imaged.manifest, imaged.executable)
    tools.set(tool.llm.name, tool)
  }
  const { find, named, names, offered } = toolTable([...tools.values()])
  return ToolRegistry.of({ find, offered, names, masked: isMasked })
})

/** Arguments that are not JSON are shown by their end: it tells where they broke off, and the call is replayed without them. */
const SHOWN_CHARS = 200

const parseProblem = (text: string): string => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? "they are nested too deeply" : "they are another kind of value"
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, SHOWN_CHARS) : "they are not JSON"
  }
}

/** `undefined` where the tool itself can say what it makes of them. */
export const argumentsProblem = (
  tool: string,
  input: Schema.Json,
  output: EventOf<"ModelOutput">["payload"] | undefined
): string | undefined => {
  const name = shownName(tool.slice(0, 64))
  if (typeof input !== "string")
    return typeof input === "object" && input !== null && !Array.isArray(input)
      ? undefined
      : `the arguments of ${name} are not a JSON object: ${JSON.stringify(input).slice(0, SHOWN_CHARS)}. Nothing was run`
  const end = input.length <= SHOWN_CHARS ? input : `…${input.slice(-SHOWN_CHARS)}`
  const shown = end === "" ? "They are empty" : `They end with: ${end.toWellFormed()}`
  return output !== undefined && isCut(output)
    ? `your answer was cut at ${output.usage.output_tokens} tokens, inside the arguments of ${name}. Nothing was run. Write in smaller parts. ${shown}`
    : `the arguments of ${name} are not a JSON object: ${parseProblem(input)}. Nothing was run. ${shown}`
}

const isUnlisted = (tool: AnyTool): boolean => !isControl(tool) && (tool.ofScripts === true || tool.unlisted === true)

const isVisible = (lane: LaneId, { lanes }: AnyTool): boolean =>
  lanes === "both" || (lanes === "edge") === (jobOf(lane) === undefined)

/** A job may always report, move its skill on and keep its memory, whatever its constraints allow. */
export const isConstrainable = (name: string): boolean =>
  name !== "choir.core.report" && name !== CORE_WRITEBACK && name !== "choir.memory.delta" && name !== SKILL_TRANSITION

const fits = (name: string, allowed: ReadonlyArray<string>): boolean =>
  allowed.length === 0 || allowed.some((one) => offeredName(one) === offeredName(name)) || !isConstrainable(name)

/** The tools that jobs have, with their effects; a control tool only commits. */
export const jobTools = (all: ReadonlyArray<AnyTool>): ReadonlyArray<JobTool> =>
  all.flatMap((tool) =>
    tool.lanes === "edge"
      ? []
      : [{ name: ToolName.make(tool.llm.name), effect: isControl(tool) ? "none" : tool.effect }]
  )

const offeredTool = ({ llm }: AnyTool): Tool => ({
  name: toWireName(llm.name),
  description: llm.description,
  parameters: llm.input_schema
})

/** No constraint. */
const EVERY: ReadonlyArray<string> = []

/** Tools by their wire names, as lanes find them. */
export const toolTable = (all: ReadonlyArray<AnyTool>) => {
  const byName = new Map(all.map((tool) => [toWireName(tool.llm.name), tool]))
  const tools = [...byName.values()]
  const shown = new Map(tools.map((tool) => [tool, offeredTool(tool)]))
  const seenBy = (lane: LaneId) => tools.filter((tool) => isVisible(lane, tool) && !isUnlisted(tool))
  // Every call of a lane asks for its list, and all jobs see the same tools.
  const offers = () =>
    weakMemoize(
      (allowed: ReadonlyArray<string>, lane: LaneId): ReadonlyArray<Tool> =>
        seenBy(lane)
          .filter(({ llm }) => fits(llm.name, allowed))
          .flatMap((tool) => shown.get(tool) ?? []),
      () => true
    )
  const toEdge = offers()
  const toJobs = offers()
  return {
    named: (name: string) => byName.get(name.replaceAll(".", "-")),
    find: (lane: LaneId, wireName: string) => {
      const tool = byName.get(wireName.replaceAll(".", "-"))
      return tool !== undefined && isVisible(lane, tool) ? tool : undefined
    },
    offered: (lane: LaneId, allowed: ReadonlyArray<string> = EVERY): ReadonlyArray<Tool> =>
      jobOf(lane) === undefined ? toEdge(allowed, lane) : toJobs(allowed, lane),
    names: (lane: LaneId) => seenBy(lane).map((tool) => toWireName(tool.llm.name))
  }
}
