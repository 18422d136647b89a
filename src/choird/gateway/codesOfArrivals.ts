/** Pairing codes among the messages of a gateway: from strangers, from groups, and from people who already have a DM. */
import { Effect, Metric } from "effect"
import type { Config } from "#schema/Config.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { Arrival } from "./Arrival.ts"
import { Pairings } from "./Pairings.ts"
import { makeRefused } from "./refusedMessage.ts"
import { dmNamed } from "./route.ts"
import { USER_ID_CHARS_MAX } from "#src/choird/chatcommands/Speaker.ts"

const strangers = Metric.counter("choir_gateway_strangers", { incremental: true })

/** The text that may be a code: the sender's own. */
const pairingText = ({ forwarded, text }: Arrival) => (forwarded === true || text === undefined ? "" : text)

/** A code for somebody else, or for another agent, that a known person sent. */
const knownText = (
  { agent_id, dm }: { readonly agent_id: AgentId; readonly dm: ResourceName },
  code: { readonly name: string; readonly agent_id?: AgentId }
) =>
  code.agent_id === undefined || code.agent_id === agent_id
    ? `You already talk to me, as ${dm}. The code is for ${code.name}, who has to send it.`
    : `You already talk with ${agent_id} here, as ${dm}. A bot has one agent for each person. To talk with ${code.agent_id} too, send a code to another bot; to talk with it here instead, on the host: choirctl agent stop ${agent_id} && choirctl agent start ${code.agent_id} --dm ${dm}`

/** The handling of a stranger's message: a pairing code lets the sender in, everything else is dropped. */
export const makeStranger = Effect.gen(function* () {
  const pairings = yield* Pairings
  const refused = yield* makeRefused
  return Effect.fnUntraced(function* (running: Config, gateway: ResourceName, arrival: Arrival) {
    const { group, user_id } = arrival
    const text = pairingText(arrival)
    const writer = dmNamed(running, gateway, user_id)
    const isNew = group !== undefined && dmNamed(running, gateway, group.chat_id) === undefined
    const letsIn =
      group === undefined
        ? pairings.redeem(gateway, user_id, text)
        : isNew
          ? pairings.redeemGroup(gateway, { chat_id: group.chat_id, writer, user_id, text })
          : Effect.succeed(false)
    if (yield* letsIn) return
    yield* Metric.update(strangers, 1)
    yield* refused(gateway, "STRANGER", undefined, { user_id: user_id.slice(0, USER_ID_CHARS_MAX) })
  })
})

/** The answer to a code that a person with a DM sends in private; undefined for every other message, which its agent gets. */
export const makeKnownCode = Effect.map(
  Pairings,
  (pairings) =>
    (gateway: ResourceName, arrival: Arrival, { agent_id, dm }: Parameters<typeof knownText>[0]) =>
      arrival.group !== undefined
        ? Effect.undefined
        : Effect.map(pairings.recognise(gateway, arrival.user_id, pairingText(arrival)), (code) =>
            code === undefined ? undefined : knownText({ agent_id, dm }, code)
          )
)
