/** Exclusive resources, leased to one running agent at a time. */
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import { boundDms, type ResourceBindings } from "#schema/ResourceBindings.ts"
import { BINDINGS } from "#schema/Resources.ts"
import { type DatabaseAway, inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { AgentId, ResourceName, type SessionId } from "#schema/Ids.ts"

/** The kinds of resource that one agent at a time may hold; `browser` is the agent's own context and is named after the agent. */
export const LeaseKind = Schema.Literals(["workspace", "git_identity", "notion", "email", "dm", "browser"])
export type LeaseKind = typeof LeaseKind.Type

export interface LeaseRow {
  readonly kind: LeaseKind
  readonly name: string
  readonly agent_id: AgentId
  readonly session_id: SessionId
}

/** Another agent holds the resource, or choird itself (`holder: null`) while it is emptied. */
export class ResourceHeld extends Schema.TaggedError<ResourceHeld>()("ResourceHeld", {
  kind: LeaseKind,
  resource: ResourceName,
  holder: Schema.NullOr(AgentId)
}) {
  override get message() {
    const label = this.kind === "browser" ? this.kind : BINDINGS[this.kind].label
    const resource = `the ${label} "${this.resource}"`
    return this.holder === null ? `${resource} is being reset` : `${resource} is leased by the agent "${this.holder}"`
  }
  get hint() {
    if (this.holder === null) return "try again in a moment"
    return `choirctl agent stop ${this.holder}, or choose another with --${this.kind.replaceAll("_", "-")}`
  }
}

/** The bindings of a run, or those of an agent that talks to nobody yet. */
type Bound = Omit<ResourceBindings, "dm"> & Partial<Pick<ResourceBindings, "dm">>

/** The resources that these bindings need exclusively; a shared e-mail account needs no lease. */
export const exclusive = (
  config: Config,
  agent_id: AgentId,
  bindings: Bound
): ReadonlyArray<Pick<LeaseRow, "kind" | "name">> => [
  { kind: "workspace", name: bindings.workspace },
  ...(bindings.dm === undefined ? [] : boundDms({ ...bindings, dm: bindings.dm })).map((name) => ({
    kind: "dm" as const,
    name
  })),
  ...(bindings.git_identity === undefined ? [] : [{ kind: "git_identity" as const, name: bindings.git_identity }]),
  ...(bindings.notion === undefined ? [] : [{ kind: "notion" as const, name: bindings.notion }]),
  ...(bindings.email === undefined || config.email_accounts[bindings.email]?.sharing === "shared"
    ? []
    : [{ kind: "email" as const, name: bindings.email }]),
  { kind: "browser", name: agent_id }
]

/** Grants and takes back leases. They belong to a run, from start to stop or breaker, and survive epochs. */
export class Leases extends Context.Service<
  Leases,
  {
    /** Takes every resource or none. */
    acquire(
      agent_id: AgentId,
      session_id: SessionId,
      wanted: ReadonlyArray<Pick<LeaseRow, "kind" | "name">>
    ): Effect.Effect<void, ResourceHeld | DatabaseAway>
    /** Fails if another agent, or choird itself, holds one of them; takes none. */
    requireFree(
      agent_id: AgentId,
      wanted: ReadonlyArray<Pick<LeaseRow, "kind" | "name">>
    ): Effect.Effect<void, ResourceHeld | DatabaseAway>
    /** Keeps free resources from every agent until the scope closes. Takes all or none. */
    withhold(
      wanted: ReadonlyArray<Pick<LeaseRow, "kind" | "name">>
    ): Effect.Effect<void, ResourceHeld | DatabaseAway, Scope.Scope>
    /** Like every write that decides who may run, in a transaction, which a displaced choird cannot commit. */
    release(agent_id: AgentId): Effect.Effect<void, DatabaseAway>
    /** Moves a run's leases to its next session (budget close, D19). */
    transfer(agent_id: AgentId, session_id: SessionId): Effect.Effect<void, DatabaseAway>
    readonly all: Effect.Effect<ReadonlyArray<LeaseRow>, DatabaseAway>
  }
>()("choir/choird/Leases") {
  static readonly layer = Layer.effect(
    Leases,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      /** Not in the table: what choird withholds ends with choird. */
      const withheld = new Set<string>()

      const requireNotWithheld = Effect.fnUntraced(function* (wanted: ReadonlyArray<Wanted>) {
        const found = wanted.find((resource) => withheld.has(keyOf(resource)))
        if (found === undefined) return
        return yield* new ResourceHeld({ kind: found.kind, resource: ResourceName.make(found.name), holder: null })
      })

      /** Starts are rare, so one at a time is fast enough, and rules out deadlocks. */
      const take = Effect.fnUntraced(function* (
        agent_id: AgentId,
        session_id: SessionId,
        wanted: ReadonlyArray<Wanted>
      ) {
        const kinds = wanted.map(({ kind }) => kind)
        const names = wanted.map(({ name }) => name)
        yield* requireFree(wanted, agent_id)
        yield* requireNotWithheld(wanted)
        yield* sql`INSERT INTO choir_control.leases (kind, name, agent_id, session_id, epoch)
          SELECT kind, name, ${agent_id}, ${session_id},
            coalesce((SELECT epoch FROM choir_control.sessions WHERE session_id = ${session_id}), 0)
          FROM unnest(${kinds}::text[], ${names}::text[]) AS wanted (kind, name)
          ON CONFLICT (kind, name) DO UPDATE SET session_id = excluded.session_id, epoch = excluded.epoch`
      })

      return Leases.of({
        acquire: Effect.fn("Leases.acquire")(function* (agent_id, session_id, wanted) {
          yield* onDatabase(inTransaction(take(agent_id, session_id, wanted)))
        }),
        requireFree: Effect.fn("Leases.requireFree")(function* (agent_id, wanted) {
          yield* requireNotWithheld(wanted)
          yield* onDatabase(inTransaction(requireFree(wanted, agent_id)))
        }),
        withhold: Effect.fn("Leases.withhold")(function* (wanted) {
          yield* requireNotWithheld(wanted)
          // Withheld before the check: an agent that comes later sees it, and the check sees one that came earlier.
          yield* Effect.acquireRelease(
            Effect.sync(() => wanted.forEach((resource) => withheld.add(keyOf(resource)))),
            () => Effect.sync(() => wanted.forEach((resource) => withheld.delete(keyOf(resource))))
          )
          yield* onDatabase(inTransaction(requireFree(wanted, null)))
        }),
        release: Effect.fn("Leases.release")(function* (agent_id) {
          yield* inTransaction(sql`DELETE FROM choir_control.leases WHERE agent_id = ${agent_id}`)
        }, onDatabase),
        transfer: Effect.fn("Leases.transfer")(function* (agent_id, session_id) {
          yield* inTransaction(sql`UPDATE choir_control.leases SET session_id = ${session_id},
              epoch = coalesce((SELECT epoch FROM choir_control.sessions WHERE session_id = ${session_id}), 0)
            WHERE agent_id = ${agent_id}`)
        }, onDatabase),
        all: onDatabase(sql<LeaseRow>`SELECT kind, name, agent_id, session_id FROM choir_control.leases
          ORDER BY kind, name`)
      })
    })
  )
}

type Wanted = Pick<LeaseRow, "kind" | "name">

const keyOf = ({ kind, name }: Wanted) => `${kind} ${name}`

/** Fails if any of them is leased. The next caller waits for the end of this transaction. */
const requireFree = Effect.fnUntraced(function* (wanted: ReadonlyArray<Wanted>, agent_id: AgentId | null) {
  const sql = yield* SqlClient.SqlClient
  const kinds = wanted.map(({ kind }) => kind)
  const names = wanted.map(({ name }) => name)
  yield* sql`LOCK TABLE choir_control.leases IN SHARE ROW EXCLUSIVE MODE`
  const [held] = yield* sql<LeaseRow>`SELECT kind, name, agent_id FROM choir_control.leases
    JOIN unnest(${kinds}::text[], ${names}::text[]) AS wanted (kind, name) USING (kind, name)
    WHERE agent_id IS DISTINCT FROM ${agent_id} ORDER BY kind, name LIMIT 1`
  if (held === undefined) return
  const resource = ResourceName.make(held.name)
  return yield* new ResourceHeld({ kind: held.kind, resource, holder: held.agent_id })
})
