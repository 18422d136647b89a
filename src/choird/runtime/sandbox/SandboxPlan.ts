/**
 * The plan of a sandbox as pure data: the arguments of bubblewrap (bwrap(1)), and the chain of programs that ends in it.
 *
 * As an ordinary user the chain is a guard, then bubblewrap. As root it first enters a mount namespace of its own, binds the
 * agent's folders below /run/choir/UID, which an unprivileged uid can reach although choird's home is 0700, and becomes that uid
 * for good. bubblewrap never runs as host root: with real uid 0 mapped, /proc/sys would be writable from inside.
 */
import { dirname } from "node:path"
import {
  type AgentEndpoint,
  CONTAINER_RUN_BYTES_MAX,
  CONTAINER_SHM_BYTES_MAX,
  CONTAINER_TMP_BYTES_MAX
} from "#src/choird/runtime/ContainerRuntime.ts"
import {
  agentCommand,
  type AgentPaths,
  partOf,
  PROGRAM_PARTS,
  type ProgramPart
} from "#src/choird/runtime/AgentCommand.ts"
import { dyingWith } from "#src/choird/runtime/HostProcess.ts"
import { asUid, boundChain } from "#src/choird/runtime/privateMounts.ts"

/** Host paths as bubblewrap sees them. */
export interface SandboxSources extends Readonly<Partial<Record<ProgramPart, string>>> {
  readonly workspace: string
  readonly socket_dir: string
  readonly choir: string
  readonly node: string
  readonly init: string
  readonly program: string
  readonly rg: string
}

/** The facts of the host that decide on the form of a sandbox. */
export interface SandboxHost {
  /** Top folders such as `lib64`, with the target where they are links into /usr. */
  readonly topFolders: ReadonlyArray<{ readonly name: string; readonly link?: string }>
  /** Parts of /proc that are writable for root on the host and present here. */
  readonly procFolders: ReadonlyArray<string>
  readonly hasFilter: boolean
}

/** Descriptors of bubblewrap: 3 is its status, then the inputs in the order of `inputs` in {@link HostProcess}. */
const FD = { status: "3", args: "4", passwd: "5", group: "6", filter: "7" } as const

/** The user inside. Its host uid is choird's own, or the agent's own when choird is root. */
const UID = "1000"
export const PASSWD = `choir:x:${UID}:${UID}:Choir agent:/tmp:/bin/sh\n`
export const GROUP = `choir:x:${UID}:\n`

/** The paths of the agent's things inside. */
export const INSIDE: AgentPaths = {
  node: "/opt/choir/bin/node",
  program: "/opt/choir/choir-agent.js",
  socket: "/run/choir/choird.sock",
  workspace: "/workspace",
  choir: "/choir",
  rg: "/opt/choir/bin/rg"
}
/** Outside of PATH: a process that runs it cannot be inspected, and the agent must be able to inspect what tools run (R22). */
const INSIDE_INIT = "/opt/choir/init/sh"
export const INSIDE_PATH = "/opt/choir/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** Parts of /etc that programs need and that reveal nothing about the host's users. */
const ETC = [
  "alternatives",
  "ca-certificates",
  "hosts",
  "ld.so.cache",
  "localtime",
  "mime.types",
  "nsswitch.conf",
  "resolv.conf",
  "ssl/certs"
]

const NAMESPACES = [
  "--unshare-user",
  "--unshare-ipc",
  "--unshare-pid",
  "--unshare-uts",
  "--unshare-cgroup-try",
  // bubblewrap's own first process would be one that every command inside may rewrite.
  "--as-pid-1"
]
const PRIVILEGES = ["--disable-userns", "--uid", UID, "--gid", UID, "--cap-drop", "ALL"]
const LIFETIME = ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "choir"]

const tmpfs = (bytes: number, mode: string, path: string) => [
  ["--size", String(bytes)],
  ["--perms", mode],
  ["--tmpfs", path]
]

const readOnly = (path: string) => ["--ro-bind", path, path]

const system = (host: SandboxHost): ReadonlyArray<ReadonlyArray<string>> => [
  readOnly("/usr"),
  ...host.topFolders.map(({ name, link }) =>
    link === undefined ? readOnly(`/${name}`) : ["--symlink", link, `/${name}`]
  ),
  ...ETC.map((name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
  ["--ro-bind-data", FD.passwd, "/etc/passwd"],
  ["--ro-bind-data", FD.group, "/etc/group"],
  ["--proc", "/proc"],
  ...host.procFolders.map(readOnly),
  ["--dev", "/dev"],
  ...tmpfs(CONTAINER_SHM_BYTES_MAX, "1777", "/dev/shm"),
  ["--remount-ro", "/dev"],
  ...tmpfs(CONTAINER_TMP_BYTES_MAX, "1777", "/tmp"),
  ...tmpfs(CONTAINER_RUN_BYTES_MAX, "0755", "/run")
]

const places = (sources: SandboxSources): ReadonlyArray<ReadonlyArray<string>> => [
  ["--bind", sources.workspace, INSIDE.workspace],
  ["--ro-bind", sources.socket_dir, dirname(INSIDE.socket)],
  ["--ro-bind", sources.choir, INSIDE.choir],
  ["--ro-bind", sources.node, INSIDE.node],
  ["--ro-bind", sources.init, INSIDE_INIT],
  ["--ro-bind", sources.program, INSIDE.program],
  ...PROGRAM_PARTS.flatMap((part) => {
    const source = sources[part]
    return source === undefined ? [] : [["--ro-bind-try", source, partOf(INSIDE.program, part)]]
  }),
  ["--ro-bind", sources.rg, INSIDE.rg],
  ["--chdir", INSIDE.workspace]
]

/**
 * bubblewrap's arguments, for its descriptor 4: the token in `env` is never in a command line. Without `sources` it is the
 * sandbox of a trial, which holds the system only.
 */
export const bwrapArguments = (
  host: SandboxHost,
  env: Readonly<Record<string, string>>,
  sources?: SandboxSources
): string =>
  [
    NAMESPACES,
    PRIVILEGES,
    LIFETIME,
    ...system(host),
    ...(sources === undefined ? [] : places(sources)),
    ["--remount-ro", "/"],
    ...Object.entries(env).map(([name, value]) => ["--setenv", name, value]),
    host.hasFilter ? ["--seccomp", FD.filter] : [],
    ["--json-status-fd", FD.status]
  ]
    .flat()
    .map((argument) => `${argument}\0`)
    .join("")

/**
 * Waits for every orphan of the namespace until the agent ends, and ends as it did. The kernel keeps signals of the inside from it, but
 * for those that a shell handles itself. The shell's message about a killed child is not output of the agent.
 */
const INIT = '"$@" & exec 2>/dev/null; trap "" HUP INT QUIT TERM; wait "$!"'

/**
 * The sealed first process, and the agent below it. The count of processes is limited here too: in a user namespace of its own the
 * kernel counts the agent's alone.
 */
export const insideCommand = (
  pids: number,
  endpoint?: AgentEndpoint,
  flags: ReadonlyArray<string> = []
): ReadonlyArray<string> => [
  INSIDE_INIT,
  "-c",
  INIT,
  "init",
  "/usr/bin/prlimit",
  "--core=0",
  `--nproc=${pids}`,
  "--",
  ...agentCommand(INSIDE, endpoint, ["--own-pid-namespace", ...flags])
]

/** The folder in which root binds an agent's folders, inside a mount namespace of their own. */
const bindBase = (uid: number) => `/run/choir/${uid}`

const BOUND: ReadonlyArray<readonly [kind: "d" | "f", source: keyof SandboxSources]> = [
  ["d", "workspace"],
  ["d", "socket_dir"],
  ["d", "choir"],
  ["f", "node"],
  ["f", "init"],
  ["f", "program"],
  ...PROGRAM_PARTS.map((part) => ["f", part] as const),
  ["f", "rg"]
]

/** The sources as the agent's uid reaches them. */
export const boundSources = (uid: number): SandboxSources => {
  const at = (name: keyof SandboxSources) => `${bindBase(uid)}/${name}`
  return {
    workspace: at("workspace"),
    socket_dir: at("socket_dir"),
    choir: at("choir"),
    node: at("node"),
    init: at("init"),
    program: at("program"),
    ...Object.fromEntries(PROGRAM_PARTS.map((part) => [part, at(part)])),
    rg: at("rg")
  }
}

/** bubblewrap as an ordinary user. */
export const plainChain = (parent: number, command: ReadonlyArray<string>): ReadonlyArray<string> =>
  dyingWith(parent, ["bwrap", "--args", FD.args, "--", ...command])

/** bubblewrap as an unprivileged uid, started by root. */
export const rootChain = (
  parent: number,
  uid: number,
  command: ReadonlyArray<string>,
  sources?: SandboxSources
): ReadonlyArray<string> =>
  boundChain(
    bindBase(uid),
    BOUND.flatMap(([kind, name]) => {
      const source = sources?.[name]
      return source === undefined ? [] : [[kind, source, name] as const]
    }),
    dyingWith(parent, ["bwrap", "--args", FD.args, "--", ...command], asUid(uid))
  )
