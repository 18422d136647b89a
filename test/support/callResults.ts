import { Effect, Layer } from "effect"
import type { HostOutcome } from "#src/choird/hosttools/HostTool.ts"
import { type Claim, CallResults } from "#src/choird/hosttools/CallResults.ts"

/** What host tools with an effect were asked and answered, in memory. */
export const memoryCallResults = Layer.sync(CallResults, () => {
  const stored = new Map<string, { readonly digest: string; outcome: HostOutcome | undefined }>()
  const claimed = (digest: string, before: { digest: string; outcome: HostOutcome | undefined }): Claim => {
    if (before.digest !== digest) return { type: "reused" }
    return before.outcome === undefined ? { type: "in doubt" } : { type: "done", outcome: before.outcome }
  }
  return CallResults.of({
    claim: ({ call_id, digest }) =>
      Effect.sync(() => {
        const before = stored.get(call_id)
        if (before !== undefined) return claimed(digest, before)
        stored.set(call_id, { digest, outcome: undefined })
        return { type: "mine" }
      }),
    keep: ({ call_id, digest }, outcome) => Effect.sync(() => void stored.set(call_id, { digest, outcome }))
  })
})
