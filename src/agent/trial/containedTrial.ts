/** The program of a trial in a container: choird's socket brings the task and takes the outcome. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import type { HttpClient } from "effect/http"
import { type ContainedTask, type FromTrial, REPORT_TEXT_CHARS_MAX, type SkillTask } from "#schema/ContainedTrial.ts"
import { fromWireName, shownName, type ToolName } from "#schema/Tool.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Denied } from "#src/agent/control/verbAnswer.ts"
import { gitHelper } from "#src/agent/git/credentials.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ImageTools } from "#src/agent/image/ImageTools.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { Environment } from "#src/agent/model/prompt/Environment.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import type { Apart } from "#src/shared/program/callsApart.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { layerSkillFiles } from "#src/agent/workspace/SkillFiles.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { skillReport } from "./skillReport.ts"
import { runProgramTrial, runToolTrial } from "./toolTrial.ts"
import { eventsOf, runSkill } from "./Trial.ts"
import { TrialChannel } from "./TrialChannel.ts"
import { layerTrial } from "./trialSession.ts"
import type { CallId } from "#schema/Ids.ts"
import type { PreparedCall, Tool, ToolOutcome } from "#src/agent/tools/Tool.ts"
import { FETCH_TOOL } from "#src/shared/web/hostQueries.ts"
import { layerReplaced } from "./replacedTools.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { takeWayOut } from "#src/shared/wire/wayOut.ts"

/** It only reads; it counts as acting where its address could carry what a lane has read, and a trial has nothing of the user's. */
const READS: ReadonlySet<string> = new Set([FETCH_TOOL])

const HELD_BACK: ToolOutcome = { status: "success", summary: "done", output: {} }

const notOf = (name: string): ToolOutcome => ({
  status: "error",
  summary: `${shownName(name)} needs a session; trials have none; continue without it`
})

/** Tools whose effect is on sessions, memory, plans or proposals, which a trial has none of. */
const OF_SESSIONS = /^choir\.(?:core\.(?!report|writeback)|memory\.(?:query|upsert|delete)|plan\.|propose\.)/u

/**
 * The tools of a skill that is tried. Calls that read, and calls that change the trial's own workspace, are made; a call that would act outside
 * is answered as done, and noted.
 */
const makeVirtualEffects = () => {
  const held = new Set<CallId>()

  const virtual = (tool: Tool, prepared: PreparedCall): PreparedCall => {
    const effect = prepared.effect ?? tool.effect
    const { name } = tool.llm
    const unasked = { ...prepared, confirm: Effect.undefined }
    if (OF_SESSIONS.test(name)) return { ...unasked, effect: "none", run: () => Effect.succeed(notOf(name)) }
    if (effect !== "external") return { ...unasked, run: (context) => prepared.run({ ...context, network: false }) }
    if (READS.has(name)) return { ...unasked, effect: "none" }
    return {
      ...unasked,
      effect: "none",
      run: ({ call_id }) =>
        Effect.sync(() => {
          held.add(call_id)
          return HELD_BACK
        })
    }
  }

  return { layer: layerReplaced(virtual), isHeld: (call_id: CallId) => held.has(call_id) }
}

/** The things of a container that its program is given. */
interface ContainedPlace {
  readonly socket: string
  readonly workspace: string
  readonly choir: string
  readonly rg: string
  readonly mailReader: string
  readonly apart: Apart
  readonly ownsPidNamespace: boolean
  /** For models, and for the services of the agent's resources. */
  readonly modelHttp: Layer.Layer<HttpClient.HttpClient>
  readonly outsideHttp: Layer.Layer<HttpClient.HttpClient>
}

/** choird, which runs host tools for the trial and has no session of it. */
const layerControlPlane = Layer.effect(
  ControlPlane,
  Effect.map(TrialChannel, ({ execute }) => {
    const denied = (verb: string) =>
      Effect.fail(new Denied({ verb, type: "NOT_AVAILABLE", reason: "a trial has no session" }))
    return ControlPlane.of({
      hello: () => denied("INIT_HELLO"),
      secrets: () => denied("GET_SECRETS"),
      heartbeat: () => denied("HEARTBEAT"),
      execute: (call) => execute(call),
      approval: () => denied("REQUEST_APPROVAL"),
      terminate: () => Effect.void,
      config: (config_version) => Effect.succeed({ config_version }),
      report: () => Effect.void,
      signals: Stream.never
    })
  })
)

/** The tools of the image that a task can use: a fault of another one does not end the trial. */
const toolsOf = (task: ContainedTask): ((name: ToolName) => boolean) => {
  if (task.type !== "skill") return (name) => name === task.tool
  const spec = task.skills.find(({ name }) => name === task.skill)
  const named = Object.values(spec?.states ?? {}).flatMap(({ allowed_tools }) => allowed_tools)
  const wanted = new Set(named.map((name) => fromWireName(name) ?? name))
  return (name) => wanted.has(name)
}

const layerImageTools = (choir: string, task: ContainedTask) =>
  Layer.effect(
    ImageTools,
    Effect.map(ImageTools, (tools) => {
      const isWanted = toolsOf(task)
      return tools.filter(({ manifest }) => isWanted(manifest.llm.name))
    })
  ).pipe(Layer.provide(ImageTools.layer(choir)))

/** The references of a skill that is in no image, in a folder that goes with the trial; otherwise those of the image. */
const layerReferences = (choir: string, task: ContainedTask) => {
  if (task.type !== "skill" || task.references === undefined) return layerSkillFiles(choir)
  const { references, skill } = task
  const opened = Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "choir-skill-"))
      for (const { base64, path } of references) {
        // choird checked the paths; what leaves the folder is not a reference.
        if (pathInside(path) !== path) continue
        const file = join(folder, "skills", skill, path)
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(file, Buffer.from(base64, "base64"))
      }
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  return Layer.unwrap(Effect.map(opened, layerSkillFiles))
}

const layerSurroundings = (place: ContainedPlace, task: ContainedTask) => {
  const { apart, choir, outsideHttp, ownsPidNamespace, workspace } = place
  return Layer.mergeAll(
    layerControlPlane,
    layerImageTools(choir, task),
    layerReferences(choir, task),
    Environment.layer({ workspace, shell: existsSync("/bin/bash") ? "bash" : "sh" }),
    Layer.provideMerge(GitAccess.layer({ helper: gitHelper(choir) }), ProcessRunner.layer({ ownsPidNamespace, apart })),
    Layer.provide(OutsideApi.layer, outsideHttp),
    Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root: workspace })))
  )
}

const layerOf = (place: ContainedPlace, task: ContainedTask, instead: Parameters<typeof layerTrial>[3]) =>
  layerTrial(
    { ...task, skills: task.type === "skill" ? task.skills : [], rg: place.rg, mailReader: place.mailReader },
    layerSurroundings(place, task),
    Layer.provide(Llm.layer, place.modelHttp),
    instead
  )

const trySkill = Effect.fnUntraced(function* (place: ContainedPlace, task: SkillTask) {
  const effects = makeVirtualEffects()
  return yield* Effect.gen(function* () {
    const log = yield* EventLog
    const started = yield* monotonicMs
    const limit = yield* runSkill(task)
    const duration_ms = (yield* monotonicMs) - started
    return skillReport({ skill: task.skill, events: eventsOf(log), limit, duration_ms, isHeld: effects.isHeld })
  }).pipe(Effect.provide(layerOf(place, task, effects.layer)))
})

const doTask = Effect.fnUntraced(function* (place: ContainedPlace, task: ContainedTask) {
  const asTheyAre = (registry: Parameters<Parameters<typeof layerTrial>[3]>[0]) => registry
  if (task.type === "skill") return { type: "tried_skill", tried: yield* trySkill(place, task) } satisfies FromTrial
  const message: FromTrial =
    task.type === "tool"
      ? { type: "tried_tool", tried: yield* Effect.provide(runToolTrial(task), layerOf(place, task, asTheyAre)) }
      : { type: "tried_program", tried: yield* Effect.provide(runProgramTrial(task), layerOf(place, task, asTheyAre)) }
  return message
})

/** Does the task and says how it went, so that the process ends well either way. */
export const containedTrial = (place: ContainedPlace) =>
  Effect.gen(function* () {
    const channel = yield* TrialChannel
    const task = yield* channel.task
    takeWayOut(task.config.way_out ?? {})
    const message = yield* Effect.catch(Effect.scoped(doTask(place, task)), ({ message }) =>
      Effect.succeed<FromTrial>({ type: "failed", reason: firstPart(message, REPORT_TEXT_CHARS_MAX) })
    )
    yield* channel.send(message)
  }).pipe(Effect.provide(Layer.merge(TrialChannel.layer(place.socket), TokenCount.layer)), Effect.scoped)
