/**
 * A process of choird for what strangers made, such as a compressed page, or for a package that gets no fixes: it has no environment, no network, no other
 * program's memory and none of choird's files, so that a fault in it gives nothing away (docs/security.md, What choird takes apart).
 *
 * As root it is a user of its own in a mount namespace that holds its files. As an ordinary user it is in bubblewrap. Where neither works, what is left are
 * Node's permissions, which keep its JavaScript from files, processes and the network.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { basename, join } from "node:path"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { dyingWith, HOST_PATH, signalGroup } from "./HostProcess.ts"
import { SANDBOX_UID_COUNT, SANDBOX_UID_FIRST } from "./Ownership.ts"
import { asUid, boundChain } from "./privateMounts.ts"

/** The users of these processes where choird is root, beside those of sandboxes, their trial and the browser. */
const CLOSED_UID_FIRST = SANDBOX_UID_FIRST + SANDBOX_UID_COUNT + 100
/** Processes that run at once have users of their own; there are far fewer. */
const CLOSED_UID_COUNT = 256
/** Open files of a process. */
const CLOSED_FILES_MAX = 64

export interface ClosedProgram {
  /** One file, without packages beside it. */
  readonly program: string
  /** Limits of its heap and stack, as flags of Node. */
  readonly flags: ReadonlyArray<string>
  /** All memory that it may write, in MiB: what a decoder unpacks into is beside its heap. */
  readonly memory_mb_max?: number
  /** Folders of files that it reads and cannot write. Their places, as it sees them, are its arguments. */
  readonly folders?: ReadonlyArray<string>
}

/** A file or folder that the build made beside choird's own program. */
export const builtPath = (name: string): string => join(packageFolder, "dist", name)
export const builtProgram = (name: string): string => builtPath(`${name}.js`)

/** Node looks whether the package of a program says that it is a module. */
const PACKAGE = join(packageFolder, "package.json")

/** The paths of a process's files, as it sees them. */
interface Inside {
  readonly node: string
  readonly program: string
  readonly folders: ReadonlyArray<string>
}

const insideOf = (base: string, { folders = [], program }: ClosedProgram): Inside => ({
  node: `${base}/node`,
  // No package is beside it to say that it is a module.
  program: `${base}/program.${program.endsWith(".ts") ? "mts" : "mjs"}`,
  folders: folders.map((_, index) => `${base}/files${index}`)
})

const nodeCommand = ({ folders, node, program }: Inside, { flags }: ClosedProgram): ReadonlyArray<string> => [
  node,
  "--permission",
  ...[program, PACKAGE, ...folders.map((path) => `${path}/*`)].map((path) => `--allow-fs-read=${path}`),
  "--disable-sigusr1",
  ...flags,
  program,
  ...folders
]

let started = 0

/** As root. The user differs from process to process, so that none can look into another. */
const asOwnUser = (closed: ClosedProgram): ReadonlyArray<string> => {
  const uid = CLOSED_UID_FIRST + (started++ % CLOSED_UID_COUNT)
  const base = `/run/choir/${uid}`
  const inside = insideOf(base, closed)
  const folders = (closed.folders ?? []).map(
    (path, index) => ["d", path, basename(inside.folders[index] ?? "")] as const
  )
  const files = [
    ["f", process.execPath, basename(inside.node)],
    ["f", closed.program, basename(inside.program)],
    ...folders
  ] as const
  const command = dyingWith(process.pid, nodeCommand(inside, closed), asUid(uid))
  return boundChain(base, files, command, ["--net", "--ipc"])
}

const readOnly = (source: string, target = source) => ["--ro-bind-try", source, target]

/** As an ordinary user. */
const inBubblewrap = (closed: ClosedProgram): ReadonlyArray<string> => {
  const inside = insideOf("/opt/choir", closed)
  const places = [
    ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"].flatMap((path) => readOnly(path)),
    readOnly(process.execPath, inside.node),
    readOnly(closed.program, inside.program),
    ...(closed.folders ?? []).map((path, index) => readOnly(path, inside.folders[index]))
  ].flat()
  const walls = ["--unshare-all", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"]
  return ["bwrap", ...walls, ...places, "--dev", "/dev", "--chdir", "/", "--", ...nodeCommand(inside, closed)]
}

const PROBES = {
  root: ["unshare", "--mount", "--net", "--ipc", "--propagation", "private", "--", "true"],
  user: ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--", "true"]
}

const script = (command: ReadonlyArray<string>): string => command.map(shellQuoted).join(" ")

/** A shell that takes the walls which this host has. Only the limits are the same everywhere. */
const commandOf = (closed: ClosedProgram): string => {
  const isRoot = process.getuid?.() === 0
  const walled = isRoot ? asOwnUser(closed) : inBubblewrap(closed)
  const { folders = [], memory_mb_max, program } = closed
  const plain = nodeCommand({ node: process.execPath, program, folders }, closed)
  return [
    `ulimit -c 0; ulimit -f 0; ulimit -n ${CLOSED_FILES_MAX}`,
    ...(memory_mb_max === undefined ? [] : [`ulimit -d ${memory_mb_max * 1024}`]),
    `if ${script(isRoot ? PROBES.root : PROBES.user)} >/dev/null 2>&1; then exec ${script(walled)}; fi`,
    `exec ${script(plain)}`
  ].join("\n")
}

/** Starts a process with pipes as its standard input and output. It is the first of its group, and the kernel ends it with choird. */
export const startClosed = (closed: ClosedProgram): ChildProcess => {
  const [shell = "", ...args] = dyingWith(process.pid, ["sh", "-c", commandOf(closed)])
  return spawn(shell, args, { stdio: ["pipe", "pipe", "ignore"], detached: true, cwd: "/", env: { PATH: HOST_PATH } })
}

/** Ends a process and all below it, whatever it is doing. */
export const endClosed = ({ pid }: ChildProcess): void => {
  if (pid !== undefined) signalGroup(pid, "SIGKILL")
}

/** V8 ends a process by this signal when its heap is full, and bubblewrap passes it on as a code. */
export const isOutOfMemory = (code: number | null, signal: NodeJS.Signals | null): boolean =>
  signal === "SIGABRT" || code === 134
