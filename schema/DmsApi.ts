/** The bots and the people of config.json, and how an operator lets a person in: a code that the person sends to the bot. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId, ResourceName } from "./Ids.ts"

/** A DM of config.json to be: its name, its bot, whether it may be an admin, and the agent that it will talk to. */
export const PairDm = Schema.Struct({
  name: ResourceName,
  gateway: ResourceName,
  admin: Schema.Boolean,
  agent_id: Schema.optionalKey(AgentId),
  /** It is for a group: the code counts in a group alone, from somebody who may command the agent there. */
  group: Schema.optionalKey(Schema.Boolean)
})
export type PairDm = typeof PairDm.Type

/** A code that is good once, until it expires. `agent_id` is null where several agents are there and none was named. */
export const PairingCode = Schema.Struct({
  name: ResourceName,
  gateway: ResourceName,
  code: Schema.String,
  expires_at: Schema.String,
  agent_id: Schema.NullOr(AgentId),
  /** The bot's name at Telegram, without the @; null while choird does not know it. */
  bot: Schema.NullOr(Schema.String),
  group: Schema.optionalKey(Schema.Boolean),
  /** The DMs that the agent has already, with which the new one shares a conversation; absent where it has none. */
  shares: Schema.optionalKey(Schema.Array(ResourceName)),
  /** Why an earlier code of the bot ended unused. */
  warning: Schema.optionalKey(Schema.String)
})
export type PairingCode = typeof PairingCode.Type

/** A person or a group at a bot, or the console. */
export const DmSummary = Schema.Struct({
  name: ResourceName,
  gateway: ResourceName,
  user_id: Schema.String,
  admin: Schema.Boolean,
  /** The agent that answers there; null where no agent does. */
  agent_id: Schema.NullOr(AgentId)
})
export type DmSummary = typeof DmSummary.Type

/** The detail of a gateway that has just begun, which is neither well nor ill. */
export const GATEWAY_CONNECTING = "connecting"

/** A bot, or the console. */
export const GatewaySummary = Schema.Struct({
  name: ResourceName,
  type: Schema.String,
  /** The bot's name at Telegram, without the @; null while choird does not know it, and for a console. */
  bot: Schema.NullOr(Schema.String),
  ok: Schema.Boolean,
  detail: Schema.String,
  dms: Schema.Array(ResourceName)
})
export type GatewaySummary = typeof GatewaySummary.Type

export const DmsApi = HttpApiGroup.make("dms").add(
  HttpApiEndpoint.get("list", "/dms", { success: Schema.Array(DmSummary), error: ApiErrors }),
  HttpApiEndpoint.get("gateways", "/gateways", { success: Schema.Array(GatewaySummary), error: ApiErrors }),
  HttpApiEndpoint.post("pair", "/dms/pair", { payload: PairDm, success: PairingCode, error: ApiErrors })
)
