/** Taps on the buttons of approval cards: who tapped, which request is meant, and the words that the person sees at once (D16, E7). */
import { Context, Effect, Layer } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { type CardTap, readTap } from "#src/choird/approvals/card.ts"
import { isAdmin } from "#src/choird/approvals/decider.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import type { Speaker } from "./Speaker.ts"
import { makeChatDecisions } from "./chatDecisions.ts"
import { USER_ID_CHARS_MAX } from "./route.ts"

/** A tap as a gateway reports it. */
export interface Tap {
  /** Its id, unique within the gateway. */
  readonly id: string
  /** The person who tapped, whatever chat the button is in. */
  readonly user_id: string
  readonly data: string
}

/** The answer to a tap; a loud one has to be closed by the person. */
export interface TapAnswer {
  readonly text: string
  readonly loud: boolean
}

const loud = (text: string): TapAnswer => ({ text, loud: true })

/** Turns a tap on the button of a card into a decision, and says what the person sees at once. */
export class CardTaps extends Context.Service<
  CardTaps,
  {
    /** Decides at once, whatever the agent does. The same tap again gets the same answer. `undefined` for a stranger, who gets none. */
    tap(gateway: ResourceName, tap: Tap): Effect.Effect<TapAnswer | undefined>
  }
>()("choir/choird/CardTaps") {
  static readonly layer = Layer.effect(
    CardTaps,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const approvals = yield* Approvals
  const audit = yield* Audit
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const { decide } = yield* makeChatDecisions

  /** The agent of an approval, if a person at this DM may see it: an admin every one, others that of an agent at their DM. */
  const agentOf = Effect.fnUntraced(function* ({ approval_id }: CardTap, dm: ResourceName) {
    const found = yield* Effect.result(approvals.get(approval_id))
    if (found._tag === "Failure") return undefined
    const { agent_id } = found.success
    const { config: running } = yield* config.current
    if (isAdmin(running, dm)) return agent_id
    const view = (yield* lifecycle.list).find((one) => one.agent_id === agent_id)
    return view?.bindings !== null && view !== undefined && boundDms(view.bindings).includes(dm) ? agent_id : undefined
  })

  const decideBy = Effect.fnUntraced(function* (
    { action, approval_id, hash8 }: CardTap,
    speaker: Omit<Speaker, "request_id">,
    request_id: string
  ) {
    const resolution = action === "reject" ? "rejected" : "approved"
    // The button is on an admin's card alone, and anybody can send its data.
    if (action === "agent" && !isAdmin((yield* config.current).config, speaker.dm))
      return loud("Only an admin may allow calls for the whole agent, beyond one job.")
    const grant = action === "job" || action === "agent" ? { grant: action } : {}
    const command = { type: "decide", resolution, approval_id, reason: null, hash8, ...grant } as const
    const { kind, text } = yield* decide(command, { ...speaker, request_id })
    return { text, loud: kind === "refusal" }
  })

  return CardTaps.of({
    tap: Effect.fn("CardTaps.tap")(function* (gateway, { data, id, user_id }) {
      const { config: running } = yield* config.current
      const found = Object.entries(running.dms).find(([, dm]) => dm.gateway === gateway && dm.user_id === user_id)
      if (found === undefined) {
        const detail = { refused: "STRANGER", user_id: user_id.slice(0, USER_ID_CHARS_MAX) }
        yield* audit.record({ who: `gateway:${gateway}`, action: "gateway.tap", detail })
        return undefined
      }
      const dm = ResourceName.make(found[0])
      const tapped = readTap(data)
      if (tapped === undefined) return loud("This button is no longer valid.")
      const agent_id = yield* agentOf(tapped, dm)
      if (agent_id === undefined) return loud(`There is no approval ${tapped.approval_id} here.`)
      return yield* decideBy(tapped, { agent_id, gateway, dm, writer: dm, admin: isAdmin(running, dm) }, id)
    })
  })
})
