/** INIT_HELLO: an agent names itself, and gets its lease token and the state to continue from (D12). */
import { Effect, Redacted } from "effect"
import type { Caller, InitHello } from "#schema/AgentApi.ts"
import { EDGE } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { AGENT_LINE } from "#src/choird/logs/metrics.ts"
import { audited, denied, runOf, shareOf, words } from "./agentCaller.ts"
import { conflict, fromSessionUnknown, fromSessionUnreadable } from "#src/choird/api/refusals.ts"

/** The difference between the image that an agent names and the one that choird started. */
const imageDrift = ({ image_version, manifests }: AgentView, payload: InitHello) => {
  if (payload.image_version !== image_version)
    return { said: payload.image_version, reason: `this run was started from the image ${image_version ?? "none"}` }
  const key = (["tool_manifest_hash", "skill_manifest_hash"] as const).find((key) => payload[key] !== manifests?.[key])
  if (key === undefined) return undefined
  return { said: `${key} ${payload[key]}`, reason: `the image ${image_version} was built with another ${key}` }
}

/** Swaps the token only if the caller is what it claims, in the image that choird started (D12). */
export const initHello = Effect.fn("AgentApi.INIT_HELLO")(function* (
  caller: Caller,
  payload: InitHello,
  authorization: string
) {
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  const store = yield* ConfigStore
  const tokens = yield* Tokens
  const { bindings, view } = yield* runOf(caller, "INIT_HELLO")
  if (payload.session_id !== caller.session_id || payload.agent_id !== caller.agent_id)
    return yield* denied(caller, "INIT_HELLO", "says it is another agent or session")
  const drift = imageDrift(view, payload)
  if (drift !== undefined) {
    yield* audited(caller, "INIT_HELLO", { refused: "IMAGE_MISMATCH", reason: words(drift.said) })
    return yield* conflict("IMAGE_MISMATCH", drift.reason)
  }
  const page = payload.tail_from
  if (page !== undefined && caller.standing !== "current")
    return yield* denied(caller, "INIT_HELLO", "asks for the tail with the bootstrap token")
  // Reading a long history may take the agent longer than it may be silent, and so may a slow database (D8).
  yield* lifecycle.heartbeat(caller.session_id, view.config_version)
  const { session_id } = caller
  const tail = yield* Effect.mapError(
    databaseDefect(page === undefined ? events.recovery(session_id) : events.tail(session_id, page)),
    fromSessionUnreadable
  )
  const head = yield* Effect.mapError(databaseDefect(events.head(caller.session_id)), fromSessionUnknown)
  // The next page is requested with the lease token, and a token in use must stay valid.
  const lease_token =
    page === undefined
      ? Redacted.value(yield* databaseDefect(tokens.lease(caller)))
      : authorization.replace(/^bearer +/iu, "")
  const current = yield* store.current
  if (page === undefined) {
    yield* lifecycle.hello(caller.session_id, caller.epoch, payload.calls_apart)
    const { agent_id, epoch, session_id } = caller
    const start = head.rev === 0 ? "fresh" : `resumed at revision ${head.rev}`
    yield* Effect.logInfo(`epoch ${epoch} said hello: ${start}`).pipe(
      Effect.annotateLogs({ ...AGENT_LINE, topic: "session", agent_id, session_id, lane: EDGE, rev: head.rev })
    )
  }
  return {
    status: head.rev === 0 ? ("fresh" as const) : ("resumed" as const),
    lease_token,
    epoch: caller.epoch,
    resource_bindings: bindings,
    config_version: current.version,
    config: yield* shareOf(caller, current.config, bindings),
    ...(tail.snapshot === undefined ? {} : { snapshot: tail.snapshot }),
    tail_events: tail.events,
    tail_more: tail.more
  }
})
