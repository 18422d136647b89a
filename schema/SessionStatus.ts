/** How a session stands (D19): active, or why it is not. */
import { Schema } from "effect"

export const SessionStatus = Schema.Literals(["active", "stopped", "crashed", "closed"])
export type SessionStatus = typeof SessionStatus.Type
