import type { Deferred } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import type { Pace } from "./Pace.ts"

/** A chat with its DM. Its id changes when its group becomes a supergroup. */
export interface Chat {
  readonly dm: ResourceName
  /** Its id in config.json. */
  readonly user_id: string
  chat_id: string
  readonly pace: Pace
  /** Done once its bot stops: a delivery makes no further call. */
  readonly left: Deferred.Deferred<void>
  /** The message whose topic is gone: its further parts go to the chat at once. */
  outside?: string
}
