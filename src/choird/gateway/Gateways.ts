/** Takes what people send at a gateway to their agents, and answers for choird where no agent can (spec 19.2, R42, R45). */
import { Clock, Context, Effect, Layer, Metric, Option } from "effect"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Inbox } from "./Inbox.ts"
import { Outbox, type Outgoing } from "./Outbox.ts"
import { type Arrival, route } from "./route.ts"

const strangers = Metric.counter("choir_gateway_strangers", { incremental: true })

export class Gateways extends Context.Service<
  Gateways,
  {
    /**
     * Stores a batch in order, together with the gateway's offset. Doing it again with the same ids changes nothing, so that a
     * gateway may confirm the batch afterwards and ask for it again after a death in between (R42).
     */
    receive(gateway: ResourceName, offset: number, arrivals: ReadonlyArray<Arrival>): Effect.Effect<void>
  }
>()("choir/choird/Gateways") {
  static readonly layer = Layer.effect(
    Gateways,
    Effect.gen(function* () {
      const config = yield* ConfigStore
      const events = yield* EventStore
      const inbox = yield* Inbox
      const lifecycle = yield* Lifecycle
      const outbox = yield* Outbox

      const tell = (
        gateway: ResourceName,
        { id }: Pick<Arrival, "id">,
        message: Pick<Outgoing, "dm" | "agent_id" | "kind" | "text">
      ) => outbox.tell({ ...message, gateway, source_id: `${gateway}:${id}`, in_reply_to: null })

      /** What `/status` answers: a few words for a person. */
      const status = Effect.fnUntraced(function* (agent_id: AgentId) {
        const view = yield* Effect.orDie(lifecycle.view(agent_id))
        const state =
          view.session_id === null
            ? undefined
            : Option.getOrUndefined(yield* Effect.option(events.state(view.session_id)))
        const minutes = Math.floor(((yield* Clock.currentTimeMillis) - view.since_ms) / 60_000)
        const cores = [...(state?.cores.keys() ?? [])]
        return [
          `${agent_id} is ${view.status}${view.status === "running" ? ` since ${minutes} min` : ""}.`,
          ...(view.reason === null ? [] : [`${view.reason}.`]),
          ...(state === undefined ? [] : [state.edge.state === "EDGE_IDLE" ? "Nothing is open." : "It is at work."]),
          ...(cores.length === 0 ? [] : [`Jobs: ${cores.join(", ")}.`])
        ].join("\n")
      })

      const receive = Effect.fn("Gateways.receive")(function* (
        gateway: ResourceName,
        offset: number,
        arrivals: ReadonlyArray<Arrival>
      ) {
        const { config: running } = yield* config.current
        const views = yield* lifecycle.list
        const routed = arrivals.map((arrival) => ({ arrival, to: route(running, views, gateway, arrival) }))
        for (const { arrival, to } of routed) {
          if (to.type === "stranger") yield* Metric.update(strangers, 1)
          if (to.type === "refuse") yield* tell(gateway, arrival, { ...to, kind: "refusal" })
          if (to.type === "status")
            yield* tell(gateway, arrival, { ...to, kind: "notice", text: yield* status(to.agent_id) })
        }
        const messages = routed.flatMap(({ arrival, to }) => (to.type === "message" ? [{ id: arrival.id, ...to }] : []))
        const received = yield* inbox.receiveAll(
          gateway,
          offset,
          messages.map(({ agent_id, dm, id, text }) => ({
            gateway,
            client_id: id,
            agent_id,
            dm,
            text,
            attachments: []
          }))
        )
        for (const [index, message] of messages.entries()) {
          const stored = received[index]
          if (stored?.type !== "full") continue
          const text = `${stored.pending} messages wait for me already, so I did not take this one. Please send it again later.`
          yield* tell(gateway, message, { ...message, kind: "refusal", text })
        }
      })

      return Gateways.of({ receive })
    })
  )
}
