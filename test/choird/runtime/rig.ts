/** What a runtime needs to start an agent, made in a temporary home as choird's is: 0700, its socket 0600. */
import { rgPath } from "@vscode/ripgrep"
import { Effect, Layer, Queue, Redacted, Schedule } from "effect"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { spawn } from "node:child_process"
import { createServer } from "node:net"
import type { Socket } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import type {
  ContainerId,
  ContainerSpec,
  HostContainerId,
  RuntimeStatus
} from "#src/choird/runtime/ContainerRuntime.ts"
import { apartProgram } from "#src/shared/program/apartProgram.ts"
import { statOf } from "#src/choird/runtime/ProcessIdentity.ts"

/** Starting real processes may take a while on a busy machine. */
export const LIVE = { timeout: 300_000 }

/** What the runtimes of the host itself are made of. */
export const HostParts = Layer.mergeAll(Cgroups.layer, DockerEngine.layer({}))

/** The id of a container of one of them. */
export const hostId = (id: ContainerId): HostContainerId => {
  if (id.type === "docker") throw new Error(`${id.name} is a container of an engine`)
  return id
}

interface Hello {
  readonly argv: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly pid: number
  readonly cwd: string
}

/** A connected agent. */
interface AgentLink extends Hello {
  /** Runs the body of an async function inside and answers its JSON; `require`, `sh(command)` and `flag(name)` are given. */
  ask(code: string): Effect.Effect<unknown>
  /** The first line of output that a shell command prints inside, standard error after it. */
  sh(command: string): Effect.Effect<string>
}

const linkOver = (socket: Socket): Effect.Effect<AgentLink> =>
  Effect.callback((resume) => {
    const waiting = new Map<number, (answer: { value?: unknown; error?: string }) => void>()
    let asked = 0
    socket.on("error", () => undefined)
    const ask = (code: string) =>
      Effect.callback<unknown>((done) => {
        const id = ++asked
        waiting.set(id, ({ value, error }) => done(error === undefined ? Effect.succeed(value) : Effect.die(error)))
        socket.write(`${JSON.stringify({ ask: id, code })}\n`)
      })
    const sh = (command: string) =>
      Effect.map(ask(`const { out, err } = sh(${JSON.stringify(command)}); return out + err`), (text) =>
        String(text).trim()
      )
    createInterface(socket).on("line", (line) => {
      const message = JSON.parse(line)
      if (message.hello === true) resume(Effect.succeed({ ...message, ask, sh }))
      else waiting.get(message.ask)?.(message)
    })
  })

/** The agents that rigs were made for, in the order of their numbers. */
const agents: Array<string> = []

const numberOf = (agent: string): number => {
  const known = agents.indexOf(agent)
  return known === -1 ? agents.push(agent) - 1 : known
}

/** Numbers an agent's sessions within this run. */
let sessions = 0

export const makeRig = Effect.fnUntraced(function* (agent = "dev") {
  const home = realpathSync(mkdtempSync("/tmp/choir-runtime-"))
  const image = join(home, "images", agent)
  const socket_dir = join(home, "socks")
  const workspace = join(home, "workspace")
  mkdirSync(join(image, "choir"), { recursive: true })
  writeFileSync(join(image, "choir", "version.json"), "{}")
  for (const folder of [socket_dir, workspace]) mkdirSync(folder, { mode: 0o700 })
  cpSync(join(import.meta.dirname, "choir-agent.js"), join(home, "choir-agent.js"))
  writeFileSync(join(home, "choir-agent.o200k"), "words")
  writeFileSync(join(home, "choir-agent.apart"), apartProgram() ?? "", { mode: 0o755 })
  const links = yield* Queue.bounded<Socket>(8)
  const server = createServer((socket) => Queue.offerUnsafe(links, socket))
  yield* Effect.callback<void>((resume) => {
    server.listen(join(socket_dir, "choird.sock"), () => resume(Effect.void))
  })
  chmodSync(join(socket_dir, "choird.sock"), 0o600)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.close()
      rmSync(home, { recursive: true, force: true })
    })
  )
  const session = `${process.pid}x${++sessions}`.padStart(16, "0").slice(-16)
  // Each has its own: other tests' agents run beside it, and a test looks for all processes that hold it.
  const token = `b00tstrap-${session}`
  const spec: ContainerSpec = {
    agent_id: AgentId.make(agent),
    agent_number: numberOf(agent),
    session_id: SessionId.make(session),
    epoch: 1,
    image_version: ImageVersion.make("abcdef0"),
    image,
    program: join(home, "choir-agent.js"),
    node: realpathSync(process.execPath),
    rg: rgPath,
    socket_dir,
    workspace,
    bootstrap_token: Redacted.make(token),
    limits: { cpus: 1, memory_mb: 512, pids: 128 }
  }
  return { home, spec, token, connected: Effect.flatMap(Queue.take(links), linkOver) }
})

/** Whether a pid is gone; a zombie is. */
export const isGone = (pid: number) => Effect.map(statOf(pid), (stat) => stat === undefined || stat.state === "Z")

/** Waits for a condition that the kernel brings about. The programs of these tests sleep for longer than a test may take. */
export const comesTrue = <E>(condition: Effect.Effect<boolean, E>) =>
  Effect.repeat(condition, { until: (met) => met, schedule: Schedule.spaced("5 millis") })

/** A holder's container: started by a process of its own, as `uid` when one is given. */
export const startHolder = Effect.fnUntraced(function* (
  type: "sandbox" | "process",
  home: string,
  spec: ContainerSpec,
  uid?: number
) {
  const { bootstrap_token, ...rest } = spec
  const args = [join(import.meta.dirname, "holder.ts"), type, home, JSON.stringify(rest)]
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, args, {
        env: { HOLDER_TOKEN: Redacted.value(bootstrap_token) },
        stdio: ["ignore", "pipe", "inherit"],
        ...(uid === undefined ? {} : { uid, gid: uid })
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const line = yield* Effect.callback<string>((resume) => {
    createInterface(child.stdout).once("line", (line) => resume(Effect.succeed(line)))
    child.once("exit", (code) => resume(Effect.die(`the holder ended with ${code}`)))
  })
  const { id, status } = JSON.parse(line) as { id: HostContainerId; status: RuntimeStatus }
  return { pid: child.pid ?? 0, id, status }
})
