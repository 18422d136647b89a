import type { ResourceName } from "#schema/Ids.ts"
import type { Pace } from "./Pace.ts"

/** A chat with its DM. Its id changes when its group becomes a supergroup. */
export interface Chat {
  readonly dm: ResourceName
  /** Its id in config.json. */
  readonly user_id: string
  chat_id: string
  readonly pace: Pace
  /** The message whose topic is gone: its further parts go to the chat at once. */
  outside?: string
}
