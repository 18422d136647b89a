import { Context } from "effect"

/** Whether choird has put a file from a person into the workspace in this run, also before its message is taken. */
export const ReceivedMark = Context.Reference<() => boolean>("choir/agent/settings/ReceivedMark", {
  defaultValue: () => () => false
})
