/**
 * Runs a command with a secret as an agent that owns its pid namespace, beside a process that belongs to no call. Prints the processes
 * that the command sees besides itself and its parents.
 */
import { spawnSync } from "node:child_process"
import { Console, Effect, Redacted } from "effect"
import { CallId } from "#schema/Ids.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"

const SEES =
  "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done | grep -c '^sleep 100'; cat <&$CHOIR_SECRETS_FD"

const program = Effect.gen(function* () {
  const processes = yield* ProcessRunner
  spawnSync("env", ["-i", "setsid", "--fork", "sleep", "100"], { stdio: "ignore" })
  const { stdout } = yield* processes.run(CallId.make("s-1-1-0"), {
    command: "/bin/sh",
    args: ["-c", SEES],
    cwd: "/",
    timeout_ms: 60_000,
    secrets: Redacted.make("secret")
  })
  yield* Console.log(stdout.text)
})

await Effect.runPromise(Effect.provide(program, ProcessRunner.layer({ ownsPidNamespace: true })))
