import { Context, Layer } from "effect"
import type { AgentId } from "#schema/Ids.ts"

/** The crash times of each agent since its start, by the monotonic clock, as far as the breaker looks back. */
export class CrashTimes extends Context.Service<CrashTimes, Map<AgentId, ReadonlyArray<number>>>()(
  "choir/choird/CrashTimes"
) {
  static readonly layer = Layer.sync(CrashTimes, () => new Map())
}
