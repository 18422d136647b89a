/** Exclusive resources, leased to one running agent at a time (spec 6.4). */
import { Context, type Effect, Schema } from "effect"
import type { Config, ResourceBindings } from "#schema/Config.ts"
import { AgentId, ResourceName, type SessionId } from "#schema/Ids.ts"

/** The kinds that spec 6.4 makes exclusive; `browser` is the agent's own context and is named after the agent. */
export const LeaseKind = Schema.Literals(["workspace", "git_identity", "notion", "email", "dm", "browser"])
export type LeaseKind = typeof LeaseKind.Type

export interface LeaseRow {
  readonly kind: LeaseKind
  readonly name: string
  readonly agent_id: AgentId
  readonly session_id: SessionId
}

/** Another agent holds the resource. */
export class ResourceHeld extends Schema.TaggedError<ResourceHeld>()("ResourceHeld", {
  kind: LeaseKind,
  resource: ResourceName,
  holder: AgentId
}) {
  override get message() {
    return `the ${this.kind} "${this.resource}" is leased by the agent "${this.holder}"`
  }
  get hint() {
    return `choirctl agent stop ${this.holder}, or choose another with --${this.kind.replaceAll("_", "-")}`
  }
}

/** What these bindings need exclusively; a shared e-mail account needs no lease. */
export const exclusive = (
  config: Config,
  agent_id: AgentId,
  bindings: ResourceBindings
): ReadonlyArray<Pick<LeaseRow, "kind" | "name">> => [
  { kind: "workspace", name: bindings.workspace },
  { kind: "dm", name: bindings.dm },
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
    ): Effect.Effect<void, ResourceHeld>
    release(agent_id: AgentId): Effect.Effect<void>
    /** Moves a run's leases to its next session (budget close, D19). */
    transfer(agent_id: AgentId, session_id: SessionId): Effect.Effect<void>
    readonly all: Effect.Effect<ReadonlyArray<LeaseRow>>
  }
>()("choir/choird/Leases") {}
