/** A workspace in a temporary folder, with a folder beside it that nothing may reach. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { CallId, EDGE } from "#schema/Ids.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ProcessRunner } from "#src/agent/ProcessRunner.ts"
import { SecretStore } from "#src/agent/SecretStore.ts"
import type { ToolContext } from "#src/agent/tools/Tool.ts"
import { Workspace } from "#src/agent/Workspace.ts"

export const OUTSIDE_TEXT = "OUTSIDE"

export const temporaryWorkspace = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-workspace-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true }))
  ),
  (home) => {
    const [root, outside] = [join(home, "root"), join(home, "outside")]
    for (const folder of [root, outside]) mkdirSync(folder)
    writeFileSync(join(outside, "file"), OUTSIDE_TEXT)
    return { root, outside }
  }
)

/** What the built-in tools stand on, for as long as the test runs. */
export const toolServices = (root: string) =>
  Layer.build(
    Layer.mergeAll(
      Workspace.layer({ root }),
      ProcessRunner.layer({ ownsPidNamespace: false }),
      GitAccess.layerNone,
      SecretStore.layer
    )
  )

/** A lane that has seen these versions. */
export const laneThatSaw = (versions: Readonly<Record<string, string>> = {}): ToolContext => ({
  lane: EDGE,
  call_id: CallId.make("s-1-1-0"),
  seen: (path) => versions[path]
})
