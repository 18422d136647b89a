/** Whether this machine can hold hostile agents in sandboxes. */
import { Effect } from "effect"
import { probe } from "#src/choird/runtime/sandbox/SandboxRuntime.ts"

export const sandboxWorks = Effect.isSuccess(probe)
