/**
 * Starts a container, then opens /dev/null until no descriptor is left, and asks for its condition and end. Argument: the runtime's
 * type. Prints what it saw as one line of JSON. A process of its own, since nothing else works in one without descriptors.
 */
import { closeSync, openSync, readSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, Fiber, Redacted, Schedule } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { limitGroup, openHostContainer } from "#src/choird/runtime/HostContainer.ts"
import { reapTree } from "#src/choird/runtime/ProcessTree.ts"

const type = process.argv[2] === "sandbox" ? "sandbox" : "process"
const workspace = realpathSync(tmpdir())
const none = "/none"
const spec = {
  agent_id: AgentId.make("dev"),
  agent_number: 0,
  session_id: SessionId.make(`${process.pid}`.padStart(16, "0")),
  epoch: 1,
  image_version: ImageVersion.make("abcdef0"),
  image: none,
  program: none,
  node: none,
  rg: none,
  socket_dir: none,
  workspace,
  bootstrap_token: Redacted.make("none"),
  limits: { cpus: 1, memory_mb: 64, pids: 16 }
}

/** Tells of its first process as bubblewrap does. */
const PROGRAM = `echo "{ \\"child-pid\\": $$ }" >&3; exec sleep 300`

const takeAll = Effect.sync(() => {
  const taken: Array<number> = []
  try {
    for (;;) taken.push(openSync("/dev/null", "r"))
  } catch {
    return taken
  }
})

/** The state of a process by its open /proc/PID/stat, which a read without further descriptors brings up to date. */
const stateIn = (stat: number) =>
  Effect.sync(() => {
    const text = Buffer.alloc(512)
    try {
      return text.toString("utf8", 0, readSync(stat, text, 0, text.length, 0)).split(" ")[2] ?? ""
    } catch {
      return "Z"
    }
  })

const look = Effect.gen(function* () {
  const cgroups = yield* Cgroups
  const group = yield* limitGroup(spec)
  const launch = { program: "/bin/sh", args: ["-c", PROGRAM], cwd: "/", env: { PATH: "/usr/bin:/bin" }, inputs: [] }
  const container = yield* openHostContainer({ type, spec, group, workspace, launch })
  const { id } = container
  const before = yield* container.condition
  const stat = openSync(`/proc/${id.processes[0]?.pid}/stat`, "r")
  const taken = yield* takeAll
  const without = yield* container.condition
  const isGrouped = Object.values(cgroups.enforced).includes(true)
  const calledEmpty = isGrouped && (yield* Effect.result(cgroups.members(id.cgroup)))._tag === "Success"
  const reaping = yield* Effect.forkChild(Effect.result(reapTree(id)), { startImmediately: true })
  const killing = yield* Effect.forkChild(Effect.result(container.kill), { startImmediately: true })
  const state = yield* stateIn(stat).pipe(
    Effect.repeat({ until: (state) => state === "T" || state === "Z", schedule: Schedule.spaced("5 millis") }),
    Effect.timeoutOrElse({ duration: "10 seconds", orElse: () => stateIn(stat) })
  )
  const wasKilled = killing.pollUnsafe() !== undefined
  for (const descriptor of taken) closeSync(descriptor)
  const [reaped, killed] = [yield* Fiber.join(reaping), yield* Fiber.join(killing)]
  const after = yield* container.condition
  const calledGone = state !== "Z" && (wasKilled || reaped._tag === "Success")
  yield* Console.log(JSON.stringify({ before, without, calledEmpty, state, calledGone, killed: killed._tag, after }))
})

NodeRuntime.runMain(look.pipe(Effect.scoped, Effect.provide(Cgroups.layer)))
