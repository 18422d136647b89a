/** Users of the tests' engine, as its containers and this host see them. */
import { readFileSync } from "node:fs"
import { AGENT_UID_FIRST } from "#src/shared/docker/agentUids.ts"
import { docker } from "../../../support/dockerImage.ts"

/** The uid of an agent inside. */
export const uidOf = ({ agent_number }: { readonly agent_number: number }) => AGENT_UID_FIRST + agent_number

/** The uid of a container's first process, as the host's kernel has it. */
export const hostUid = (socket: string, container: string) => {
  const pid = docker(socket, "inspect", "--format", "{{.State.Pid}}", container)
  return Number(/^Uid:\t([0-9]+)/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])
}

/** What a shell prints that runs as a user of the namespace, with folders under paths that it sees, and with none of an agent's restrictions. */
export const asUser = (
  socket: string,
  uid: number,
  folders: Readonly<Record<string, string>>,
  script: string,
  more: ReadonlyArray<string> = []
) => {
  const mounts = Object.entries(folders).flatMap(([path, folder]) => ["--volume", `${folder}:${path}`])
  const user = ["--user", `${uid}:${uid}`, "--network", "none", ...more]
  return docker(socket, "run", "--rm", ...user, ...mounts, "debian:bookworm-slim", "sh", "-c", script)
}
