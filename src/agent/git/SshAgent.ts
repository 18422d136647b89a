/** An ssh-agent that holds the identity's key in its memory: the key comes by a pipe and is never in a file. */
import { type ChildProcess, spawn } from "node:child_process"
import { rmSync } from "node:fs"
import { Effect, Redacted, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import type { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"

/** How long ssh-agent and ssh-add may take for a key (E12). */
const GIT_KEY_MS_MAX = 10_000

/** The key cannot be used; git over ssh will be refused, everything else works. */
export class SshKeyRefused extends Schema.TaggedError<SshKeyRefused>()("SshKeyRefused", { reason: Schema.String }) {
  override get message() {
    return `the SSH key of the git identity cannot be used: ${this.reason}`
  }
}

export interface SshAgent {
  /** Sees that the agent runs and holds this key and no other. The programs that it needs run as part of the call. */
  load(call_id: CallId, key: Redacted.Redacted): Effect.Effect<void, SshKeyRefused>
}

const refused = (reason: string) => new SshKeyRefused({ reason: reason.trim() })

/** A process of the agent's own; it prints its address once it listens. */
const launch = (socket: string, keep: (pid: number) => void) =>
  Effect.callback<ChildProcess, SshKeyRefused>((resume) => {
    // What an ssh-agent that was killed left behind.
    rmSync(socket, { force: true })
    const child = spawn("ssh-agent", ["-D", "-a", socket], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { PATH: "/usr/bin:/bin" },
      detached: true
    })
    if (child.pid !== undefined) keep(child.pid)
    child.once("error", ({ message }) => resume(Effect.fail(refused(`ssh-agent cannot be started: ${message}`))))
    child.once("exit", () => resume(Effect.fail(refused("ssh-agent ended at once"))))
    child.stdout?.once("data", () => resume(Effect.succeed(child)))
    return Effect.sync(() => child.kill("SIGKILL"))
  }).pipe(
    Effect.timeoutOrElse({ duration: GIT_KEY_MS_MAX, orElse: () => Effect.fail(refused("ssh-agent does not listen")) })
  )

/** Its process ends with the scope. */
export const makeSshAgent = Effect.fnUntraced(function* (socket: string, processes: ProcessRunner["Service"]) {
  let child: ChildProcess | undefined
  let held: string | undefined
  yield* Effect.addFinalizer(() => Effect.sync(() => child?.kill("SIGKILL")))
  const isAlive = () => child !== undefined && child.exitCode === null && child.signalCode === null

  const add = Effect.fnUntraced(function* (call_id: CallId, args: ReadonlyArray<string>, stdin?: Redacted.Redacted) {
    const command = { command: "ssh-add", args, cwd: "/", timeout_ms: GIT_KEY_MS_MAX, env: { SSH_AUTH_SOCK: socket } }
    const ran = yield* processes
      .run(call_id, stdin === undefined ? command : { ...command, stdin })
      .pipe(Effect.mapError(({ message }) => refused(message)))
    if (ran.exit_code !== 0) return yield* refused(`ssh-add: ${ran.stderr.text}`)
  })

  const agent: SshAgent = {
    load: Effect.fn("SshAgent.load")(function* (call_id, key) {
      const value = Redacted.value(key)
      if (isAlive() && held === value) return
      held = undefined
      if (isAlive()) yield* add(call_id, ["-q", "-D"])
      else child = yield* launch(socket, processes.keep)
      yield* add(call_id, ["-q", "-"], Redacted.make(value.endsWith("\n") ? value : `${value}\n`))
      held = value
    })
  }
  return agent
})
