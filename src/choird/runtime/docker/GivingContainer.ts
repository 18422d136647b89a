/**
 * A container that gives what agents made in a workspace to the agent that works there now, for a choird that is not root and may change the owner of
 * nothing (D11): after another agent worked there, and once after a Choir whose agents shared a uid.
 */
import { Effect } from "effect"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import type { UserIds } from "#src/choird/runtime/agentUser.ts"
import { RUNTIME_COMMAND_MS_MAX } from "#src/choird/runtime/HostProcess.ts"
import type { Installation } from "#src/shared/docker/dockerInstallation.ts"
import { TARGET, workInContainer, type WorkspaceWork } from "./WorkspaceContainer.ts"

/** The uid that the kernel shows for every one that the namespace does not map, such as choird's. */
const UNMAPPED_UID = 65_534

/** Links themselves and not their targets; a file with a second name stays, since that name may be outside. */
const giving = ({ gid, uid }: UserIds): WorkspaceWork => ({
  kind: "give",
  command: [
    `/usr/bin/find -P ${TARGET} -xdev -uid -${UNMAPPED_UID} ! -uid ${uid}`,
    "( -type d -o ( -links 1 -type f,l,p,s ) )",
    `-execdir chown -h ${uid}:${gid} {} +`
  ].flatMap((words) => words.split(" ")),
  // Into folders that their owners keep for themselves.
  capabilities: ["CHOWN", "DAC_OVERRIDE"],
  ms_max: RUNTIME_COMMAND_MS_MAX
})

export const giveInContainer = Effect.fnUntraced(function* (
  installation: Installation,
  workspace: string,
  user: UserIds,
  oci_runtime?: string
) {
  const code = yield* workInContainer(installation, workspace, giving(user), oci_runtime)
  if (code === 0 || code === undefined) return
  return yield* new ContainerError({
    reason: "failed",
    problem: `a container could not give the files of ${workspace} to their agent: find(1) ended with ${code}`,
    fix: "Look at its file system"
  })
})
