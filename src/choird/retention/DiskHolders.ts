/** The agents that hold the most of the home's disk. They are paused first when it is low, so that one agent does not stop the others. */
import { stat } from "node:fs/promises"
import { Context, Effect, Layer, Option } from "effect"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { WorkspaceUsage } from "./WorkspaceUsage.ts"

/** An agent's share of the disk: its workspace by the newest count, if that is on the home's disk, and the events of its session. */
export interface Holder {
  readonly view: AgentView
  readonly bytes: number
  /** Files and folders of its workspace. */
  readonly files: number
  /** Whether its workspace is above its quota of bytes. */
  readonly over: boolean
  /** Whether there is more in its workspace than can be counted. */
  readonly partial: boolean
}

/**
 * The agents above their quota; if none of them is known to be, since there are none or they were not counted whole, the one that holds the
 * most, too. Files have no quota but what can be counted. `holders` includes those that are already paused, so that no other takes their place.
 */
export const firstToPause = (
  holders: ReadonlyArray<Holder>,
  what: "bytes" | "files" = "bytes"
): ReadonlyArray<Holder> => {
  const over = holders.filter((holder) => (what === "bytes" ? holder.over : holder.partial))
  const isKnown = over.some(({ partial }) => !partial)
  return isKnown ? over : [...over, ...holders.toSorted((a, b) => b[what] - a[what]).slice(0, 1)]
}

const deviceOf = (path: string) =>
  Effect.promise(() =>
    stat(path).then(
      ({ dev }) => dev,
      () => undefined
    )
  )

export class DiskHolders extends Context.Service<
  DiskHolders,
  {
    /** The holdings of these agents. Their sessions count nothing while the database does not answer. */
    holdersOf(views: ReadonlyArray<AgentView>): Effect.Effect<ReadonlyArray<Holder>>
  }
>()("choir/choird/DiskHolders") {
  static readonly layer = Layer.effect(
    DiskHolders,
    Effect.gen(function* () {
      const config = yield* ConfigStore
      const sessions = yield* SessionStore
      const usage = yield* WorkspaceUsage

      const workspaceOf = Effect.fnUntraced(function* ({ bindings }: AgentView) {
        const { config: running } = yield* config.current
        const path = bindings === null ? undefined : running.workspaces[bindings.workspace]?.path
        if (bindings === null || path === undefined) return undefined
        const [home, own] = yield* Effect.all([deviceOf(config.home), deviceOf(path)])
        return home === own ? (yield* usage.all).get(bindings.workspace) : undefined
      })

      const logBytes = ({ session_id }: AgentView) =>
        session_id === null
          ? Effect.succeed(0)
          : sessions.get(session_id).pipe(
              Effect.map(Option.match({ onNone: () => 0, onSome: ({ log_bytes }) => log_bytes })),
              Effect.orElseSucceed(() => 0)
            )

      return DiskHolders.of({
        holdersOf: (views) =>
          Effect.forEach(views, (view) =>
            Effect.map(Effect.all([workspaceOf(view), logBytes(view)]), ([workspace, log_bytes]): Holder => ({
              view,
              bytes: (workspace?.bytes ?? 0) + log_bytes,
              files: workspace?.entries ?? 0,
              over: workspace?.over ?? false,
              partial: workspace?.partial ?? false
            }))
          )
      })
    })
  )
}
