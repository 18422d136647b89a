/** A container that only deletes the contents of a workspace (D43). */
import { Effect } from "effect"
import { WORKSPACE_RESET_MS_MAX } from "#src/choird/runtime/emptyWorkspace.ts"
import type { Installation } from "#src/shared/docker/dockerInstallation.ts"
import { TARGET, workInContainer, type WorkspaceWork } from "./WorkspaceContainer.ts"

export const EMPTYING: WorkspaceWork = {
  kind: "reset",
  command: ["/usr/bin/find", "-P", TARGET, "-xdev", "-mindepth", "1", "-delete"],
  // Folders of mode 000, and sticky ones.
  capabilities: ["DAC_OVERRIDE", "FOWNER"],
  ms_max: WORKSPACE_RESET_MS_MAX
}

/** Deletes what it can and returns when its container is gone; the caller checks what is left. */
export const emptyInContainer = (installation: Installation, workspace: string, oci_runtime?: string) =>
  Effect.asVoid(workInContainer(installation, workspace, EMPTYING, oci_runtime))
