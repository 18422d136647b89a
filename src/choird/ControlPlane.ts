/** choird's own services over a configuration, a database, a runtime and log files, without those that listen to the outside. */
import { Effect, Layer } from "effect"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { layerAgentRoutes } from "#src/choird/api/agent/AgentRoutes.ts"
import { layerAgentListeners } from "#src/choird/listeners/AgentSockets.ts"
import { Shutdown } from "#src/choird/api/Shutdown.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { ConfigVersions } from "#src/choird/config/ConfigVersions.ts"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { Embeddings } from "#src/choird/memory/Embeddings.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Forgetting } from "#src/choird/memory/Forgetting.ts"
import { Knowledge } from "#src/choird/memory/Knowledge.ts"
import { MemoryContents } from "#src/choird/memory/MemoryContents.ts"
import { Recall } from "#src/choird/memory/Recall.ts"
import { memoryTools } from "#src/choird/memory/memoryTools.ts"
import { webBrowse } from "#src/choird/workers/webBrowse.ts"
import { webFetch } from "#src/choird/workers/webFetch.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { PageReader } from "#src/choird/workers/PageReader.ts"
import { WebDialer } from "#src/choird/workers/WebDialer.ts"
import { SessionMemory } from "#src/choird/memory/SessionMemory.ts"
import { Pairings } from "#src/choird/gateway/Pairings.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { OfflineModels } from "#src/choird/agents/OfflineModels.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { layerHostTools } from "#src/choird/hosttools/HostTools.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { AgentSteps } from "#src/choird/proposals/AgentSteps.ts"
import { AgentViews } from "#src/choird/agents/AgentViews.ts"
import { AgentChange } from "#src/choird/proposals/AgentChange.ts"
import { ConfigChange } from "#src/choird/proposals/ConfigChange.ts"
import { Executions } from "#src/choird/proposals/Executions.ts"
import { ProposalRehearsals } from "#src/choird/proposals/ProposalRehearsals.ts"
import { Rehearsals } from "#src/choird/trials/Rehearsals.ts"
import { OutsideTries } from "#src/choird/trials/OutsideTries.ts"
import { ProgramTrials } from "#src/choird/trials/ProgramTrials.ts"
import { SkillTrials } from "#src/choird/trials/SkillTrials.ts"
import { ToolTrials } from "#src/choird/trials/ToolTrials.ts"
import { TrialContainers } from "#src/choird/trials/TrialContainers.ts"
import { SkillReplays } from "#src/choird/trials/SkillReplays.ts"
import { layerProposals } from "#src/choird/proposals/layerProposals.ts"
import { RepoChange } from "#src/choird/proposals/RepoChange.ts"
import { RepoSteps } from "#src/choird/proposals/RepoSteps.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork } from "#src/choird/repos/GitWork.ts"
import { layerRepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { Disk } from "#src/choird/retention/Disk.ts"
import { DiskGuard } from "#src/choird/retention/DiskGuard.ts"
import { DiskHolders } from "#src/choird/retention/DiskHolders.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { WorkspaceUsage } from "#src/choird/retention/WorkspaceUsage.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { planTools } from "#src/choird/plans/planTools.ts"
import { SkillImports } from "#src/choird/skillimports/SkillImports.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { layerJobScan } from "#src/choird/sessions/JobScan.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { AgentNumbers } from "#src/choird/sessions/AgentNumbers.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { layerTelemetry } from "#src/choird/telemetry/Telemetry.ts"
import { layerAppendRules } from "#src/choird/approvals/callApprovals.ts"

const Stores = Steering.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      SessionStore.layer,
      EventStore.layer.pipe(Layer.provide(layerAppendRules)),
      Inbox.layer,
      Leases.layer,
      Audit.layer
    )
  ),
  Layer.provideMerge(Layer.mergeAll(AgentSchemas.layer, ConfigVersions.layer)),
  Layer.provideMerge(
    Layer.mergeAll(
      Runs.layer,
      WorkspaceLabels.layer,
      AgentNumbers.layer,
      Tokens.layer,
      Signals.layer,
      Contexts.layer,
      Drafts.layer,
      Outbox.layer,
      Reactions.layer,
      ChatSettings.layer
    )
  )
)

const ImageBuilder = Layer.unwrap(
  Effect.map(ConfigStore, ({ home }) =>
    Images.layer(home).pipe(
      Layer.provideMerge(Layer.merge(Repos.layer(home), GitWork.layer)),
      Layer.provideMerge(Layer.merge(Git.layer, layerRepoAccess))
    )
  )
)

/** Agents' long-term memory. */
const Memory = Layer.mergeAll(SessionMemory.layer, Knowledge.layer, MemoryContents.layer, Recall.layer).pipe(
  Layer.provideMerge(EmbeddingQueue.layer),
  Layer.provideMerge(Embeddings.layer)
)

/** The web, as choird reaches it for agents. */
const Web = Layer.merge(
  PageReader.layer(),
  Layer.provideMerge(Layer.provide(BrowserWorker.layer, Cgroups.layer), WebDialer.layer)
)

const hostTools = Effect.map(Effect.all([memoryTools, planTools, webFetch, webBrowse]), (tools) => tools.flat())

const layerTools = Layer.provideMerge(layerHostTools(hostTools), Web)

/** Skills and tools that are tried apart from every session, and rehearsed for those who decide on them. */
const layerTrials = (programs: Effect.Effect<AgentPrograms, ProgramMissing>) =>
  Layer.mergeAll(
    ToolTrials.layer,
    SkillTrials.layer,
    OutsideTries.layer,
    ProposalRehearsals.layer.pipe(
      Layer.provide(Rehearsals.layer),
      Layer.provide(SkillReplays.layer),
      Layer.provide(ProgramTrials.layer)
    )
  ).pipe(Layer.provide(TrialContainers.layer(programs)), Layer.provide(layerTools))

/** The types of proposals that agents make. */
const layerOfProposals = layerProposals.pipe(
  Layer.provideMerge(Layer.provide(AgentChange.layer, AgentViews.layer)),
  Layer.provide(Layer.merge(ConfigChange.layer, RepoChange.layer)),
  Layer.provide(RepoSteps.layer),
  Layer.provide(AgentSteps.layer)
)

/** Includes the agents' API, since starting an agent and serving its API need the same services. */
export const layerControlPlane = (programs: Effect.Effect<AgentPrograms, ProgramMissing>) =>
  Layer.mergeAll(
    Layer.provide(layerAgentRoutes, layerTools),
    layerTrials(programs),
    Models.layer,
    Layer.provideMerge(Pairings.layer, ConfigWriter.layer),
    Forgetting.layer,
    Layer.provideMerge(Layer.provide(DiskGuard.layer, DiskHolders.layer), WorkspaceUsage.layer),
    Retention.layer,
    layerTelemetry,
    layerJobScan,
    SkillImports.layer,
    Schedules.layer,
    Executions.layer
  ).pipe(
    Layer.provideMerge(Layer.provideMerge(Approvals.layer, Layer.merge(layerOfProposals, Web))),
    Layer.provideMerge(Layer.merge(SessionArchives.layer, Disk.layer)),
    Layer.provideMerge(Reconfiguration.layer),
    Layer.provideMerge(Lifecycle.layer(programs)),
    Layer.provideMerge(layerAgentListeners),
    Layer.provideMerge(OfflineModels.layer),
    Layer.provideMerge(
      Layer.mergeAll(Layer.provideMerge(Layer.merge(Memory, Plans.layer), Stores), GatewayHealth.layer, Shutdown.layer)
    ),
    Layer.provideMerge(ImageBuilder)
  )
