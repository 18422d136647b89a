/**
 * Agents under bubblewrap: namespaces of their own, no capabilities, a seccomp filter, a read-only root. It shares the host's
 * network, which `status` says (decision D41).
 */
import { createHash } from "node:crypto"
import {
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync
} from "node:fs"
import { copyFile, rename } from "node:fs/promises"
import { release } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Semaphore } from "effect"
import type { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { agentEnvironment, partsOf, specError, taskFlags } from "#src/choird/runtime/AgentCommand.ts"
import {
  giveSocket,
  giveWorkspace,
  makeUids,
  realPath,
  requireReadable,
  SANDBOX_UID_COUNT,
  SANDBOX_UID_FIRST,
  workspaceProblem
} from "#src/choird/runtime/Ownership.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import {
  ContainerError,
  ContainerRuntime,
  type ContainerSpec,
  type RuntimeStatus
} from "#src/choird/runtime/ContainerRuntime.ts"
import { limitGroup, openHostContainer } from "#src/choird/runtime/HostContainer.ts"
import { makeHostRuntime } from "#src/choird/runtime/process/ProcessRuntime.ts"
import { RUNTIME_COMMAND_MS_MAX, HOST_PATH, joining, run } from "#src/choird/runtime/HostProcess.ts"
import * as Plan from "./SandboxPlan.ts"
import { hostFilter } from "./Seccomp.ts"

/** The environment of the chain before the agent's own. */
const CHAIN_ENV = { PATH: HOST_PATH }

/** The program whose sealed copy is a sandbox's first process. The chain that starts the sandbox needs it anyway. */
const SHELL = "/bin/sh"

const TOP_FOLDERS = ["bin", "lib", "lib32", "lib64", "libx32", "sbin"]
const PROC_FOLDERS = ["/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger"]

const isRoot = Effect.sync(() => process.getuid?.() === 0)

const hostFacts = (hasFilter: boolean): Effect.Effect<Plan.SandboxHost> =>
  Effect.sync(() => ({
    topFolders: TOP_FOLDERS.filter((name) => existsSync(`/${name}`)).map((name) =>
      lstatSync(`/${name}`).isSymbolicLink() ? { name, link: readlinkSync(`/${name}`) } : { name }
    ),
    procFolders: PROC_FOLDERS.filter((path) => existsSync(path)),
    hasFilter
  }))

/** The fix for a failed trial, by the known messages of bubblewrap and the shell. */
export const fixFor = (text: string): string => {
  if (/bwrap: .*not found|bwrap cannot be started/u.test(text)) return "Run: apt install bubblewrap"
  if (/setpriv|unshare|prlimit/u.test(text) && /not found|cannot be started/u.test(text)) {
    return "Run: apt install util-linux"
  }
  if (/unknown option/iu.test(text)) return "Install bubblewrap 0.8 or newer"
  if (/namespace|uid map|Operation not permitted|Permission denied/u.test(text)) {
    const sysctl = "sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    return `Allow user namespaces, with whichever of these settings this host has: ${sysctl}`
  }
  return "Run bwrap by hand to see what it needs"
}

const inputsOf = (filter: Buffer | undefined, args: string) => [
  args,
  Plan.PASSWD,
  Plan.GROUP,
  ...(filter === undefined ? [] : [filter])
]

/** Runs an empty sandbox once, as a trial. Fails with the reason and the fix where sandboxes do not work. */
export const probe: Effect.Effect<void, ContainerError> = Effect.gen(function* () {
  const filter = yield* hostFilter
  const host = yield* hostFacts(filter !== undefined)
  const command = ["/usr/bin/true"]
  const chain = (yield* isRoot)
    ? Plan.rootChain(process.pid, SANDBOX_UID_FIRST + SANDBOX_UID_COUNT, command)
    : Plan.plainChain(process.pid, command)
  const [program = "", ...args] = chain
  const inputs = inputsOf(filter, Plan.bwrapArguments(host, {}))
  const unavailable = (text: string) =>
    new ContainerError({ reason: "unavailable", problem: `sandboxes do not work here: ${text}`, fix: fixFor(text) })
  const { code, text } = yield* run({ program, args, cwd: "/", env: CHAIN_ENV, inputs }).pipe(
    Effect.mapError((error) => unavailable(error.problem)),
    Effect.timeoutOrElse({
      duration: RUNTIME_COMMAND_MS_MAX,
      orElse: () => unavailable("bubblewrap did not finish in time")
    })
  )
  if (code !== 0) return yield* unavailable(text === "" ? `bubblewrap exited with code ${code}` : text)
}).pipe(Effect.withSpan("SandboxRuntime.probe"))

/** User namespaces count processes for themselves since Linux 5.14. */
const countsPerNamespace = (kernel: string) => {
  const [major = 0, minor = 0] = kernel.split(".").map(Number)
  return major > 5 || (major === 5 && minor >= 14)
}

const statusOf = (root: boolean, hasFilter: boolean, enforced: Cgroups["Service"]["enforced"]): RuntimeStatus => {
  const pids = enforced.pids || countsPerNamespace(release())
  const limits = { cpus: enforced.cpus, memory_mb: enforced.memory_mb, pids }
  const missing = Object.entries(limits).filter(([, works]) => !works)
  const user = root ? "a host uid of its own" : "the operator's uid"
  return {
    type: "sandbox",
    isolation: `Each agent is in a bubblewrap sandbox under ${user}; it sees the programs of the host and its workspace only.`,
    limits,
    warnings: [
      "The sandbox shares the host's network: an agent reaches loopback services, abstract Unix sockets and the local network.",
      "Dockerfiles are not built: agents have the programs of this host.",
      ...(hasFilter ? [] : [`There is no system call filter for ${process.arch}.`]),
      ...missing.map(
        ([name]) =>
          `${name} is not enforced: choird may not write control groups. On cgroup v2, the unit that choirctl daemon install writes has them delegated to it.`
      )
    ]
  }
}

const SEALED_MODE = 0o111

const copyFailed = (cause: unknown) =>
  new ContainerError({
    reason: "failed",
    problem: `a program cannot be copied for sandboxes: ${String(cause)}`,
    fix: "Make room on the disk of choird's home"
  })

const isSealed = (path: string, size: number) => {
  if (!existsSync(path)) return false
  const stat = statSync(path)
  return stat.size === size && (stat.mode & 0o7777) === SEALED_MODE && stat.uid === process.getuid?.()
}

/**
 * The sealed copy of a program, as `<name>-<key>` in `folder`. It is made at first use and when the program itself changed; copies of
 * its other versions are deleted.
 */
const sealProgram = Effect.fn("SealedProgram.seal")(function* (name: string, program: string, folder: string) {
  const { source, file, size } = yield* Effect.try({
    try: () => {
      const source = realpathSync(program)
      const { size, mtimeMs } = statSync(source)
      const key = createHash("sha256").update(`${source}\n${size}\n${mtimeMs}`).digest("hex").slice(0, 16)
      return { source, size, file: `${name}-${key}` }
    },
    catch: copyFailed
  })
  const path = join(folder, file)
  if (yield* Effect.try({ try: () => isSealed(path, size), catch: copyFailed })) return path
  yield* Effect.tryPromise({
    try: async () => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      for (const old of readdirSync(folder)) if (old.startsWith(`${name}-`)) rmSync(join(folder, old))
      await copyFile(source, `${path}.tmp`, constants.COPYFILE_FICLONE)
      chmodSync(`${path}.tmp`, SEALED_MODE)
      await rename(`${path}.tmp`, path)
    },
    catch: copyFailed
  })
  return path
})

interface SandboxOptions {
  /** choird's home. It keeps the sealed copy of Node, and no workspace may hold it. */
  readonly home: string
}

/** Real paths of everything a spec names, or why its workspace is refused. */
const resolveSources = Effect.fnUntraced(function* (
  spec: ContainerSpec,
  home: string
): Effect.fn.Return<Plan.SandboxSources, ContainerError> {
  const refused = specError(spec)
  if (refused !== undefined) return yield* refused
  const sources = {
    workspace: yield* realPath(spec.workspace),
    socket_dir: yield* realPath(spec.socket_dir),
    choir: yield* realPath(join(spec.image, "choir")),
    node: yield* realPath(spec.node),
    init: yield* realPath(SHELL),
    program: yield* realPath(spec.program),
    rg: yield* realPath(spec.rg)
  }
  const { workspace, ...relied } = sources
  const problem = workspaceProblem(workspace, [yield* realPath(home), ...Object.values(relied)])
  if (problem === undefined) return { ...sources, ...partsOf(sources.program) }
  return yield* new ContainerError({
    reason: "refused",
    problem: `the workspace ${workspace} ${problem}`,
    fix: "Give the agent its own folder in config.json"
  })
})

const make = Effect.fnUntraced(function* ({ home }: SandboxOptions) {
  const cgroups = yield* Cgroups
  const shared = yield* makeHostRuntime
  const filter = yield* hostFilter
  const root = yield* isRoot
  const uids = makeUids()
  const sealing = yield* Semaphore.make(1)

  const start = Effect.fn("SandboxRuntime.start")(
    function* (spec: ContainerSpec) {
      const found = yield* resolveSources(spec, home)
      const sealed = join(home, "images", "node")
      const node = yield* sealing.withPermit(sealProgram("node", found.node, sealed))
      const init = yield* sealing.withPermit(sealProgram("init", found.init, sealed))
      const sources = { ...found, node, init }
      const uid = root ? yield* uids(spec.agent_id) : undefined
      if (uid !== undefined) {
        const { choir, program, rg } = sources
        yield* requireReadable([choir, program, rg, ...Object.values(partsOf(program))])
        yield* giveWorkspace({ uid, gid: uid }, sources.workspace)
        yield* giveSocket({ uid, gid: uid }, sources.socket_dir)
      }
      const group = yield* limitGroup(spec)
      const host = yield* hostFacts(filter !== undefined)
      const command = Plan.insideCommand(spec.limits.pids, spec.endpoint, taskFlags(spec))
      const chain =
        uid === undefined ? Plan.plainChain(process.pid, command) : Plan.rootChain(process.pid, uid, command, sources)
      const seen = uid === undefined ? sources : Plan.boundSources(uid)
      const bwrap = Plan.bwrapArguments(host, agentEnvironment(spec, Plan.INSIDE_PATH), seen)
      const [program = "", ...args] = joining(group.joins, chain)
      return yield* openHostContainer({
        type: "sandbox",
        spec,
        group,
        workspace: sources.workspace,
        launch: { program, args, cwd: "/", env: CHAIN_ENV, inputs: inputsOf(filter, bwrap) }
      })
    },
    Effect.provideService(Cgroups, cgroups)
  )

  return ContainerRuntime.of({
    ...shared,
    type: "sandbox",
    start,
    status: Effect.sync(() => statusOf(root, filter !== undefined, cgroups.enforced))
  })
})

export const layer = (options: SandboxOptions): Layer.Layer<ContainerRuntime, never, Cgroups | DockerEngine> =>
  Layer.effect(ContainerRuntime, make(options))
