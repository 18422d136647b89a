/** The views of all agents in memory, with a stream of their changes. */
import { Context, Effect, Layer, PubSub, Stream } from "effect"
import type { CallsApart } from "#schema/AgentApi.ts"
import type { AgentStatus } from "#schema/AgentSummary.ts"
import type { Config } from "#schema/Config.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { ManifestHashes } from "#schema/Image.ts"
import type { RunBindings } from "#schema/ResourceBindings.ts"

/** The state of an agent as choird knows it without asking the database. */
export interface AgentView {
  readonly agent_id: AgentId
  readonly status: AgentStatus
  readonly session_id: SessionId | null
  readonly epoch: number
  readonly bindings: RunBindings | null
  readonly image_version: string | null
  /** The hashes of its image's version.json, as they were compared with the image's files before the start. */
  readonly manifests: ManifestHashes | null
  /** How far its calls are kept apart, by its hello; absent before it and from an agent that does not say. */
  readonly calls_apart?: CallsApart
  readonly since_ms: number
  readonly config_version: number
  /** The configuration that its run began with; settings that only a start adopts apply as they are in it. */
  readonly started_with: Config | null
  readonly reason: string | null
}

/** Changes that a slow listener may be behind before it loses the oldest. */
const AGENT_CHANGES_BUFFERED_MAX = 256

/** The view of an agent of which only the name is known. */
const unknownOf = (agent_id: AgentId): AgentView => ({
  agent_id,
  status: "stopped",
  session_id: null,
  epoch: 0,
  bindings: null,
  image_version: null,
  manifests: null,
  since_ms: 0,
  config_version: 0,
  started_with: null,
  reason: null
})

export class AgentViews extends Context.Service<
  AgentViews,
  {
    readonly of: (agent_id: AgentId) => AgentView
    /** Agents that have a view, whether config.json still has them or not. */
    readonly known: () => ReadonlyArray<AgentId>
    readonly change: (agent_id: AgentId, change: Partial<AgentView>) => Effect.Effect<AgentView>
    /** Clears the last run from the view, except why it ended. */
    readonly end: (agent_id: AgentId, status: "stopped" | "crashed", reason: string | null) => Effect.Effect<AgentView>
    readonly changes: Stream.Stream<AgentView>
    /** The view of an agent, and then each change of it. */
    readonly follow: (agent_id: AgentId) => Stream.Stream<AgentView>
  }
>()("choir/choird/AgentViews") {
  static readonly layer = Layer.effect(
    AgentViews,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const views = new Map<AgentId, AgentView>()
  const news = yield* PubSub.sliding<AgentView>({ capacity: AGENT_CHANGES_BUFFERED_MAX })
  const of = (agent_id: AgentId) => views.get(agent_id) ?? unknownOf(agent_id)
  const put = (view: AgentView) =>
    Effect.suspend(() => {
      views.set(view.agent_id, view)
      return Effect.as(PubSub.publish(news, view), view)
    })
  return AgentViews.of({
    of,
    known: () => [...views.keys()],
    change: (agent_id, change) => Effect.suspend(() => put({ ...of(agent_id), ...change })),
    end: (agent_id, status, reason) => put({ ...unknownOf(agent_id), status, reason }),
    changes: Stream.fromPubSub(news),
    follow: (agent_id) =>
      Stream.unwrap(
        // Subscribed before the view is read, so that no change is missed between the two.
        Effect.map(PubSub.subscribe(news), (changes) =>
          Stream.concat(
            Stream.sync(() => of(agent_id)),
            Stream.filter(Stream.fromSubscription(changes), (view) => view.agent_id === agent_id)
          )
        )
      )
  })
})
