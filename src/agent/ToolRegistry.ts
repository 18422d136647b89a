/** Every tool there is: built-in, global, agent (spec 8.8). It is filled once at start and never changes. */
import { Context, Effect, FileSystem, Layer, Schema } from "effect"
import { jobOf, type LaneId } from "#schema/Ids.ts"
import { ToolManifest, toWireName } from "#schema/Tool.ts"
import { decodeFile } from "#src/shared/decode.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/limits.ts"
import { toolExecutable, type ToolScope } from "#src/shared/toolExecutable.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { Arbiter } from "./Arbiter.ts"
import { ControlPlane } from "./ControlPlane.ts"
import type { ChatTool } from "./chatCompletion.ts"
import { Replication } from "./Replication.ts"
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

/** A tool of the image that cannot be offered. The agent does not start without it (fail fast, spec 8.8). */
export class ToolBroken extends Schema.TaggedError<ToolBroken>()("ToolBroken", {
  file: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the tool ${this.file} cannot be used: ${this.reason}`
  }
}

/** Finds tools for lanes. */
export class ToolRegistry extends Context.Service<
  ToolRegistry,
  {
    /** The tool behind the name that a model used, if the lane may see it. */
    find(lane: LaneId, wireName: string): AnyTool | undefined
    /** What a lane's model is offered; a job's constraints narrow it. */
    offered(lane: LaneId, allowed?: ReadonlyArray<string>): ReadonlyArray<ChatTool>
    /** The wire names a lane may use, for the answer to a call that was refused. */
    names(lane: LaneId): ReadonlyArray<string>
  }
>()("choir/agent/ToolRegistry") {
  /** `choir` is the image's folder, `rg` the search program. */
  static readonly layer = (options: { readonly choir: string; readonly rg: string }) =>
    Layer.effect(ToolRegistry, make(options))
}

const decodeManifest = decodeFile(ToolManifest)

const readManifest = Effect.fnUntraced(function* (folder: string, scope: ToolScope, name: string) {
  const fs = yield* FileSystem.FileSystem
  const file = `${folder}/${name}`
  const broken = (reason: string) => new ToolBroken({ file, reason })
  const info = yield* Effect.mapError(fs.stat(file), ({ message }) => broken(message))
  if (info.size > BigInt(MANIFEST_BYTES_MAX)) return yield* broken(`it is larger than ${MANIFEST_BYTES_MAX} bytes`)
  const text = yield* Effect.mapError(fs.readFileString(file), ({ message }) => broken(message))
  const manifest = yield* Effect.mapError(decodeManifest(file, text), ({ problems }) => broken(problems))
  const relative = toolExecutable(scope, manifest.runtime.exec_path)
  if (relative === undefined) return yield* broken(`exec_path leaves the folder tools/${scope}`)
  const executable = `${folder}/${relative}`
  const runnable = yield* Effect.orElseSucceed(
    Effect.map(fs.stat(executable), ({ mode, type }) => type === "File" && (mode & 0o111) !== 0),
    () => false
  )
  if (!runnable) return yield* broken(`${relative} is missing or not executable`)
  return yield* Effect.mapError(external(manifest, executable), ({ message }) => broken(message))
})

const scan = Effect.fnUntraced(function* (choir: string, scope: ToolScope) {
  const fs = yield* FileSystem.FileSystem
  const folder = `${choir}/tools/${scope}`
  const entries = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
  const manifests = entries.filter((name) => name.endsWith(".json")).sort()
  const tools = yield* Effect.forEach(manifests, (name) => readManifest(folder, scope, name))
  const names = tools.map(({ llm }) => llm.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) return yield* new ToolBroken({ file: twice, reason: `tools/${scope} has it twice` })
  return tools
})

const make = Effect.fnUntraced(function* (options: { readonly choir: string; readonly rg: string }) {
  const arbiter = yield* Arbiter
  const plane = yield* ControlPlane
  const replication = yield* Replication
  const settings = yield* AgentSettings
  const builtIn: ReadonlyArray<AnyTool> = [
    yield* fsRead,
    yield* fsWrite,
    yield* fsSearch(options.rg),
    yield* exec,
    coreSpawn(settings),
    coreInject,
    coreCancel,
    coreList(arbiter.state),
    coreReport(arbiter.state, plane, settings, replication.reached)
  ]
  const imaged = [...(yield* scan(options.choir, "global")), ...(yield* scan(options.choir, "agent"))]
  const tools = new Map<string, AnyTool>(builtIn.map((tool) => [toWireName(tool.llm.name), tool]))
  for (const tool of imaged) {
    const wire = toWireName(tool.llm.name)
    const taken = tools.get(wire)
    if (taken !== undefined && builtIn.includes(taken))
      return yield* new ToolBroken({ file: tool.llm.name, reason: "a built-in tool has this name" })
    tools.set(wire, tool)
  }

  const visible = (lane: LaneId, tool: AnyTool): boolean =>
    tool.lanes === "both" || (tool.lanes === "edge") === (jobOf(lane) === undefined)
  const chatTools = new Map<AnyTool, ChatTool>(
    [...tools.values()].map((tool) => [
      tool,
      {
        type: "function",
        function: {
          name: toWireName(tool.llm.name),
          description: tool.llm.description,
          parameters: tool.llm.input_schema
        }
      }
    ])
  )
  const seenBy = (lane: LaneId) => [...tools.values()].filter((tool) => visible(lane, tool))
  return ToolRegistry.of({
    find: (lane, wireName) => {
      const tool = tools.get(wireName.replaceAll(".", "-"))
      return tool !== undefined && visible(lane, tool) ? tool : undefined
    },
    offered: (lane, allowed = []) =>
      seenBy(lane)
        .filter((tool) => allowed.length === 0 || allowed.includes(tool.llm.name) || !isConstrainable(tool))
        .flatMap((tool) => chatTools.get(tool) ?? []),
    names: (lane) => seenBy(lane).map((tool) => toWireName(tool.llm.name))
  })
})

/** A job may always report, whatever its constraints allow. */
const isConstrainable = (tool: AnyTool): boolean => isControl(tool) || tool.llm.name !== "choir.core.report"
