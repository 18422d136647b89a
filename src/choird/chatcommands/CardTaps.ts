/**
 * Taps on the buttons of approval cards: who tapped, on which message, which request is meant, and the words that the person sees at once
 * (D16, E7). A tap counts on the card's own message alone, with data that only that card has (D60).
 */
import { Context, Effect, Layer, Option, Schedule } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { type CardTap, readTap } from "#src/choird/approvals/card.ts"
import type { SentCard } from "#src/choird/approvals/cardRows.ts"
import { resolutionOf } from "#src/choird/approvals/approvalStatus.ts"
import { isAdmin } from "#src/choird/approvals/decider.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import type { SentAs } from "#src/choird/queues/Outbox.ts"
import type { Speaker } from "./Speaker.ts"
import { planTapped } from "#src/choird/plans/planButtons.ts"
import { makePlanTaps } from "./planTaps.ts"
import { makeChatDecisions } from "./chatDecisions.ts"
import { USER_ID_CHARS_MAX } from "./Speaker.ts"

/** A tap as a gateway reports it. */
export interface Tap {
  /** Its id, unique within the gateway. */
  readonly id: string
  /** The person who tapped, whatever chat the button is in. */
  readonly user_id: string
  readonly data: string
  /** The message that the button is on, where the channel says so. */
  readonly on: SentAs | undefined
}

/** The answer to a tap; a loud one has to be closed by the person. */
export interface TapAnswer {
  readonly text: string
  readonly loud: boolean
}

const loud = (text: string): TapAnswer => ({ text, loud: true })

/** A person may tap before it is noted that the card was sent. How long a tap waits for that, and how often it looks. */
const CARD_NOTED_MS_MAX = 3000
const CARD_NOTED_LOOK_MS = 30

const isOn = ({ sent }: SentCard, on: SentAs | undefined): boolean =>
  sent !== undefined && sent.chat_id === on?.chat_id && sent.message_id === on.message_id

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
  const onPlan = yield* makePlanTaps

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

  /** Whether a tap is on a button that a card has, on the message that was noted as this card. */
  const isOfCard = Effect.fnUntraced(function* (gateway: ResourceName, approval_id: string, { data, on }: Tap) {
    const has = (card: SentCard | undefined) => card?.gateway === gateway && card.data.includes(data)
    const card = yield* Effect.repeat(approvals.card(approval_id), {
      schedule: Schedule.spaced(CARD_NOTED_LOOK_MS),
      times: CARD_NOTED_MS_MAX / CARD_NOTED_LOOK_MS,
      until: (found) => !has(found) || found?.isDelivered === true
    })
    return has(card) && card !== undefined && isOn(card, on)
  })

  /** The answer to a tap that decides nothing. */
  const elsewhere = Effect.fnUntraced(function* (who: string, { approval_id }: CardTap, { on }: Tap) {
    const detail = { refused: "NOT_ITS_CARD", approval_id, ...(on === undefined ? {} : { message_id: on.message_id }) }
    yield* audit.record({ who, action: "gateway.tap", detail })
    const row = yield* Effect.option(approvals.get(approval_id))
    const resolution = Option.map(row, ({ status }) => resolutionOf(status))
    const why = `I cannot match this button with the card of approval ${approval_id}, so nothing was decided.`
    return loud(
      Option.match(resolution, {
        onNone: () => why,
        onSome: (ended) => {
          if (ended === undefined) return `${why} To decide: /approve ${approval_id} or /reject ${approval_id}`
          return `${why} ${ended === "expired" ? "It has expired" : `It was already ${ended}`}.`
        }
      })
    )
  })

  const decideBy = Effect.fnUntraced(function* (
    { action, approval_id }: CardTap,
    speaker: Omit<Speaker, "request_id">,
    request_id: string
  ) {
    const resolution = action === "reject" ? "rejected" : "approved"
    // The button is on an admin's card alone, and anybody can send its data.
    if (action === "agent" && !isAdmin((yield* config.current).config, speaker.dm))
      return loud("Only an admin may allow calls for the whole agent, beyond one job.")
    const grant = action === "job" || action === "agent" ? { grant: action } : {}
    const command = { type: "decide", resolution, approval_id, reason: null, on_card: true, ...grant } as const
    const { kind, text } = yield* decide(command, { ...speaker, request_id })
    return { text, loud: kind === "refusal" }
  })

  return CardTaps.of({
    tap: Effect.fn("CardTaps.tap")(function* (gateway, tap) {
      const { data, id, user_id } = tap
      const { config: running } = yield* config.current
      const found = Object.entries(running.dms).find(([, dm]) => dm.gateway === gateway && dm.user_id === user_id)
      if (found === undefined) {
        const detail = { refused: "STRANGER", user_id: user_id.slice(0, USER_ID_CHARS_MAX) }
        yield* audit.record({ who: `gateway:${gateway}`, action: "gateway.tap", detail })
        return undefined
      }
      const dm = ResourceName.make(found[0])
      const plan = planTapped(data)
      if (plan !== undefined) return yield* onPlan(plan, { gateway, dm }, tap)
      const tapped = readTap(data)
      if (tapped === undefined) return loud("This button is no longer valid.")
      const agent_id = yield* agentOf(tapped, dm)
      if (agent_id === undefined) return loud(`There is no approval ${tapped.approval_id} here.`)
      if (!(yield* isOfCard(gateway, tapped.approval_id, tap)))
        return yield* elsewhere(`gateway:${gateway}/${dm}`, tapped, tap)
      return yield* decideBy(tapped, { agent_id, gateway, dm, writer: dm, admin: isAdmin(running, dm) }, id)
    })
  })
})
