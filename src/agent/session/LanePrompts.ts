/** The questions of lanes to their models: the prompts and the tools of a lane at a moment, and what each of its calls begins with. */
import { Effect } from "effect"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { coreOf, laneOf } from "#src/shared/session/lanes.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import type { CoreLane, SessionState } from "#src/shared/session/State.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { ImageTexts } from "#src/agent/image/ImageTexts.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import type { LaneView } from "#src/agent/memory/Compactor.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"
import { presentModel } from "#src/agent/model/ModelCalls.ts"
import { Recollection } from "#src/agent/memory/Recollection.ts"
import { Environment } from "#src/agent/model/prompt/Environment.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { transcriptOf } from "#src/agent/model/prompt/transcript.ts"
import { corePrompt, edgePrompt, type Prompt } from "#src/agent/model/prompt/Prompt.ts"

/** A call that a lane is about to make. `prompt` follows the state of the moment; `undefined` where nothing is to be asked any more. */
export interface LaneCall {
  readonly model: string
  readonly tools: ReadonlyArray<Tool>
  readonly prompt: (correction?: string) => Prompt | undefined
}

/** A call's prompt is looked at before it is asked with: as long as nothing was committed, both are one. */
const remembering = <A extends ReadonlyArray<unknown>>(make: (...from: A) => Prompt | undefined) => {
  let before: { readonly from: A; readonly prompt: Prompt | undefined } | undefined
  return (...from: A): Prompt | undefined => {
    if (before?.from.every((part, index) => part === from[index]) !== true) before = { from, prompt: make(...from) }
    return before.prompt
  }
}

/** Whether somebody outside may have written files of the workspace, in this session or an earlier one. */
const isWorkspaceLabelled = (
  { workspace_files, workspace_tainted }: SessionState,
  { workspace_label }: ReturnType<AgentSettings["Service"]["situation"]>
) => workspace_tainted || workspace_files.size > 0 || workspace_label.written_from !== undefined

/** The tools that a job is limited to by its start. */
const allowedBy = (started: ChoirEvent | undefined) =>
  started?.event_type === "CoreStarted" ? started.payload.start.tool_constraints.allowed_tools : undefined

export const makeLanePrompts = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const environment = yield* Environment
  const recollection = yield* Recollection
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  const settings = yield* AgentSettings
  const skills = yield* SkillRegistry
  const identity = yield* ImageTexts

  const sourcesFor = (lane: LaneId, wanted: string, tools: ReadonlyArray<Tool>) => {
    const model = presentModel(settings.current().config, lane, wanted)
    const reading = { find: log.find, isMasked: registry.masked, offered: offeredOf(tools) }
    const window = laneOf(arbiter.state(), lane)?.window ?? []
    // It is the longest part of a prompt, and is kept until the window changes: made while the system looks at the workspace.
    const transcript = Effect.sync(() => transcriptOf(lane === EDGE ? "edge" : "core", window, reading))
    const shown = environment.text(
      settings.model(model)?.model ?? model,
      isWorkspaceLabelled(arbiter.state(), settings.situation())
    )
    return Effect.map(Effect.all([shown, transcript], { concurrency: 2 }), ([text]) => ({
      ...reading,
      identity,
      skills,
      environment: text
    }))
  }

  const edge: Effect.Effect<LaneCall> = Effect.suspend(() => {
    const { llm } = settings.current().config
    const tools = registry.offered(EDGE)
    return Effect.map(sourcesFor(EDGE, llm, tools), (sources) => {
      const prompt = remembering(
        (state: SessionState, recollected: ReturnType<typeof recollection.found>, correction: string | undefined) =>
          edgePrompt(state, { ...sources, recollected }, correction)
      )
      return {
        model: llm,
        tools,
        prompt: (correction) => prompt(arbiter.state(), recollection.found(), correction)
      }
    })
  })

  const core = ({ job_id, job_name, lane, model, started_rev }: CoreLane): Effect.Effect<LaneCall> =>
    Effect.suspend(() => {
      const tools = registry.offered(lane, allowedBy(log.find(started_rev)))
      return Effect.map(sourcesFor(lane, model, tools), (sources) => {
        const prompt = remembering((state: SessionState, correction: string | undefined) => {
          const now = state.cores.get(job_name)
          return now?.job_id === job_id ? corePrompt(now, sources, state.rev, correction) : undefined
        })
        return { model, tools, prompt: (correction) => prompt(arbiter.state(), correction) }
      })
    })

  const prefix: LaneView["prefix"] = Effect.fnUntraced(function* (lane) {
    const job = coreOf(arbiter.state(), lane)
    if (lane !== EDGE && job === undefined) return undefined
    const { model, prompt, tools } = yield* job === undefined ? edge : core(job)
    const messages = prompt()?.prefix
    return messages === undefined
      ? undefined
      : { model: presentModel(settings.current().config, lane, model), tools, messages }
  })

  return { edge, core, view: { isMasked: registry.masked, prefix } satisfies LaneView }
})
