/** Failures of a model call that may be over later although nobody changes anything. */
import type { ModelError } from "#schema/Event.ts"

/** A refused key, an unknown name and a malformed answer are for a person to see: no patience helps. */
export const isPassing = ({ kind, status = 0 }: Pick<ModelError, "kind" | "status">): boolean =>
  kind === "rate_limited" || kind === "timeout" || kind === "unreachable" || (kind === "http" && status >= 500)
