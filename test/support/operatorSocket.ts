/** The operator API on its real socket, over the doubles of a world, with the typed client; and the events of a turn. */
import { join } from "node:path"
import { Effect, Layer, Stream, type Schema } from "effect"
import { HttpApiClient } from "effect/http-api"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, EDGE, type InboxId, type LaneId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Images, NoImage } from "#src/choird/images/Images.ts"
import { layerOperatorServer } from "#src/choird/api/operator/OperatorServer.ts"
import { Shutdown } from "#src/choird/api/Shutdown.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { Database } from "#src/choird/database/Database.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { Pairings } from "#src/choird/gateway/Pairings.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { OfflineModels } from "#src/choird/agents/OfflineModels.ts"
import { DiskGuard } from "#src/choird/retention/DiskGuard.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { WorkspaceUsage } from "#src/choird/retention/WorkspaceUsage.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { SkillImports } from "#src/choird/skillimports/SkillImports.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { OutsideTries } from "#src/choird/trials/OutsideTries.ts"
import { SkillTrials } from "#src/choird/trials/SkillTrials.ts"
import { ToolTrials } from "#src/choird/trials/ToolTrials.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { DM, layerWorld, makeWorld, type World } from "./control.ts"
import { temporaryFolder } from "./engines.ts"
import { quietMemory } from "./quietMemory.ts"

export const image = {
  image_version: ImageVersion.make("abc1234"),
  path: "/images/ada/abc1234",
  built: true,
  warnings: []
}

export const platform = Layer.mergeAll(
  Layer.mock(ContainerRuntime, {
    type: "sandbox",
    status: Effect.succeed({
      type: "sandbox" as const,
      isolation: "namespaces",
      limits: { cpus: true, memory_mb: false, pids: true },
      warnings: []
    })
  }),
  Layer.succeed(Backup, { file: (version) => Stream.make(new TextEncoder().encode(`backup of ${version}`)) }),
  GatewayHealth.layer,
  Layer.mock(ChatSettings, { moved: () => Effect.undefined }),
  Layer.mock(Pairings, { problems: Effect.succeed([]) }),
  Layer.mock(EmbeddingQueue, { status: Effect.succeed({ model: null, waiting: 0 }) }),
  quietMemory,
  Layer.mock(DiskGuard, { status: Effect.succeed(undefined) }),
  Layer.mock(SessionArchives, { deleted: () => Effect.succeedNone }),
  Layer.mock(WorkspaceUsage, { all: Effect.succeed(new Map()), now: Effect.succeed(new Map()) }),
  Layer.mock(SkillImports, {}),
  Layer.mock(BrowserWorker, { status: Effect.succeed("Chromium runs in its own sandbox") }),
  Layer.mock(SkillTrials, {}),
  Layer.mock(OutsideTries, {}),
  Layer.mock(ToolTrials, {}),
  Layer.succeed(OfflineModels, { problems: Effect.succeed([]) }),
  Shutdown.layer
)

export const images = (outcome: ReturnType<Images["Service"]["build"]> = Effect.succeed(image)) =>
  Layer.mock(Images, {
    build: (_, __, options) =>
      Effect.andThen(options?.progress?.("fetch global") ?? Effect.void, Effect.andThen(Effect.yieldNow, outcome)),
    current: (agent_id) => Effect.fail(new NoImage({ agent_id }))
  })

export const database = (world: Pick<World, "away">) =>
  Layer.succeed(Database, {
    kind: "embedded",
    version: "17.5",
    pgvector: "0.8.0",
    lost: Effect.never,
    answers: Effect.sync(() => !world.away)
  })

export const retention = (world: Pick<World, "unpruned">) =>
  Layer.mock(Retention, {
    prune: ({ dry_run, step = () => Effect.void }) =>
      Effect.as(step("audit"), { dry_run, kinds: [{ kind: "audit", removed: 3 }], disk_free_bytes: 1 }),
    problems: Effect.sync(() => world.unpruned)
  })

/** A world whose operator socket listens, with the typed client of its API. */
export const openOperator = (built = images(), trials = Layer.mock(ToolTrials, {})) =>
  Effect.gen(function* () {
    const world = yield* makeWorld
    const home = yield* temporaryFolder
    const services = yield* Layer.build(
      layerOperatorServer("0.1.0").pipe(
        Layer.provideMerge([platform, database(world), retention(world), built, layerWorld(world, home), trials])
      )
    )
    const path = join(home, "socks", "choird.sock")
    const context = yield* Layer.build(layerSocketClient(path))
    const api = yield* Effect.provideContext(HttpApiClient.make(OperatorApi, { baseUrl: "http://choird" }), context)
    return { world, services, path, api }
  })

export const said = (inbox_id: InboxId): EventDraft => ({
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id, dm: DM, text: "hi", attachments: [] }
})
export const answered = (kind: "reply" | "report", inbox_id: InboxId, text: string): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind, text, in_reply_to: inbox_id }
})
const usage = { input_tokens: 10, output_tokens: 5 }
export const output = (lane: LaneId, call_id: string): EventDraft => ({
  event_type: "ModelOutput",
  lane,
  payload: {
    call_id: CallId.make(call_id),
    purpose: "turn",
    model: "m",
    text: "done",
    tool_calls: [],
    finish_reason: "stop",
    usage,
    latency_ms: 1
  }
})
/** A call by which a job tells something of itself. */
export const reporting = (lane: LaneId, id: string, input: Schema.Json): ReadonlyArray<EventDraft> => {
  const call_id = CallId.make(id)
  const tool = "choir.core.report"
  return [
    {
      event_type: "ModelOutput",
      lane,
      payload: {
        call_id: CallId.make(`${id}-output`),
        purpose: "turn",
        model: "m",
        tool_calls: [{ call_id, name: "choir-core-report", input }],
        finish_reason: "tool_calls",
        usage,
        latency_ms: 1
      }
    },
    { event_type: "ToolCallRequested", lane, payload: { call_id, tool, input, effect: "none", locks: [] } },
    { event_type: "ToolCallCommitted", lane, payload: { call_id, locks: [] } },
    {
      event_type: "ToolResultCommitted",
      lane,
      payload: { call_id, status: "success", summary: "reported", duration_ms: 1 }
    }
  ]
}
