/** A Docker engine's description of itself (`GET /info`), as far as Choir decides on it. */
import { Schema } from "effect"
import { mappedIds } from "./subordinateIds.ts"

const Text = Schema.String
const Flag = Schema.optionalKey(Schema.Boolean)

/** Keys as the engine spells them; those that some engines lack are optional. */
export const EngineInfo = Schema.Struct({
  ServerVersion: Text,
  Driver: Text,
  DockerRootDir: Text,
  SecurityOptions: Schema.optionalKey(Schema.NullOr(Schema.Array(Text))),
  CgroupVersion: Schema.optionalKey(Text),
  PidsLimit: Flag,
  MemoryLimit: Flag,
  SwapLimit: Flag,
  CpuCfsQuota: Flag,
  LiveRestoreEnabled: Flag
})
type EngineInfo = typeof EngineInfo.Type

/** The user that root of a container is on the host. */
export type RootMapping =
  /** The engine runs as an ordinary user, who is root of its containers. */
  | { readonly type: "rootless" }
  /** The engine maps root to this uid, and as many ids from there on as `ids` says. */
  | { readonly type: "remapped"; readonly uid: number; readonly gid: number; readonly ids: number }
  /** Root is root, kept from the host by the container alone. */
  | { readonly type: "none" }

export interface EngineFacts {
  readonly version: string
  readonly storage_driver: string
  readonly root: RootMapping
  readonly limits: { readonly cpus: boolean; readonly memory_mb: boolean; readonly pids: boolean }
  /** Containers keep running while the engine restarts. */
  readonly live_restore: boolean
  readonly seccomp: boolean
}

/** An engine that remaps keeps its files in a folder that is named by the ids (dockerd(8), --userns-remap). */
const REMAPPED_FOLDER = /\/([0-9]{1,10})\.([0-9]{1,10})$/u

const rootOf = (options: ReadonlyArray<string>, folder: string, idsOf: typeof mappedIds): RootMapping => {
  const has = (name: string) => options.some((option) => option.split(",").includes(`name=${name}`))
  if (has("rootless")) return { type: "rootless" }
  const [, uid, gid] = (REMAPPED_FOLDER.exec(folder) ?? []).map(Number)
  return has("userns") && uid !== undefined && gid !== undefined
    ? { type: "remapped", uid, gid, ids: idsOf(uid, gid) }
    : { type: "none" }
}

/** @param idsOf how many ids an engine maps, which it does not say itself. */
export const engineFacts = (info: EngineInfo, idsOf = mappedIds): EngineFacts => {
  const options = info.SecurityOptions ?? []
  return {
    version: info.ServerVersion,
    storage_driver: info.Driver,
    root: rootOf(options, info.DockerRootDir, idsOf),
    limits: {
      cpus: info.CpuCfsQuota ?? false,
      memory_mb: info.MemoryLimit ?? false,
      pids: info.PidsLimit ?? false
    },
    live_restore: info.LiveRestoreEnabled ?? false,
    seccomp: options.some((option) => option.startsWith("name=seccomp"))
  }
}

/** A reason why agents cannot use an engine that answers, and what an operator can do. */
export interface EngineProblem {
  readonly problem: string
  readonly fix: string
}

const UNMAPPED = "the Docker engine has no user namespaces, so that root of a container would be root of this host"

/** It keeps its images and containers apart from those of before. */
export const REMAP = 'add "userns-remap": "default" to /etc/docker/daemon.json and run: systemctl restart docker'

/** Root of a container that is root of the host, which an operator may allow and is then always warned of (R38). */
export const unmappedRoot = ({ root }: EngineFacts): EngineProblem | undefined =>
  root.type === "none"
    ? { problem: UNMAPPED, fix: `${REMAP}. Or set runtime.allow_unmapped_root to true in config.json` }
    : undefined

/** Why no agent may be started in this engine. */
export const engineProblem = (facts: EngineFacts, allow_unmapped_root: boolean): EngineProblem | undefined =>
  allow_unmapped_root ? undefined : unmappedRoot(facts)
