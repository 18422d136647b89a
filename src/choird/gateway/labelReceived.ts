/** The label of a workspace that is about to get a file from a person: stored, and told to the agent that works there, before the file is there. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { RECEIVED_MARK } from "#src/shared/files/receivedMark.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"

/** Where there is no folder, nobody works in the workspace; a mark that is there stays. The folder may be the agent's: no link there is followed. */
const mark = (path: string) =>
  Effect.sync(() => {
    try {
      writeFileSync(path, "", { mode: 0o644, flag: "wx" })
    } catch (cause) {
      if (!["EEXIST", "ENOENT"].includes(codeOf(cause) ?? "")) throw cause
    }
  })

export const makeLabelReceived = Effect.gen(function* () {
  const config = yield* ConfigStore
  const labels = yield* WorkspaceLabels
  return (workspace: string, session_id: SessionId | null) =>
    Effect.andThen(
      labels.receive(workspace),
      session_id === null ? Effect.void : mark(join(config.home, "socks", "agents", session_id, RECEIVED_MARK))
    )
})
