/**
 * Runs hostile commands as an agent that owns its pid namespace, and prints for each, as a line of JSON, what was left of it.
 * Started by `unshare --pid --fork --mount-proc`, with itself or a shell as init.
 */
import { Console, Effect, Fiber } from "effect"
import { CallId } from "#schema/Ids.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { readProcessTable } from "#src/agent/process/ProcessTable.ts"

const DAEMON = "env -i setsid sh -c '(sleep 100 &) ; (setsid sleep 100 &)' &"

const SCRIPTS = [
  `${DAEMON} echo started`,
  `env -i setsid sh -c 'setsid sleep 100 & setsid sleep 100' >/dev/null 2>&1 & echo started`,
  `env -i CHOIR_CALL_ID=another setsid sh -c '(setsid sleep 100 &)' & echo started`,
  // Nothing but its environment tells any more whose it is once the command ends.
  `f=$(mktemp -u); mkfifo $f; env -i CHOIR_CALL_ID=beside setsid sh -c '(setsid sh -c "echo > $0; exec sleep 100" &)' $f & read x < $f; wait; echo started`,
  `env -i setsid nohup sh -c 'trap "" TERM HUP INT; (nohup setsid sleep 100 &); sleep 100' >/dev/null 2>&1 & echo started`,
  // A process that moves on to a child all the time, so that whoever was seen is dead already.
  `env -i setsid sh -c 'f() { f & exit; }; f' >/dev/null 2>&1 & echo started`,
  `${DAEMON} echo started; sleep 100`
]
/** Time to say that they started. The last one is ended by it. */
const TIMEOUT_MS = 3000

/** A call that runs beside them all, as one process. A command of another call may know its id, and say that its own processes are that call's. */
const BESIDE = { command: "/bin/sleep", args: ["1000"], cwd: "/", timeout_ms: 1_000_000 }

const program = Effect.gen(function* () {
  const processes = yield* ProcessRunner
  const beside = yield* Effect.forkChild(processes.run(CallId.make("beside"), BESIDE))
  for (const [index, script] of SCRIPTS.entries()) {
    const command = { command: "/bin/sh", args: ["-c", script], cwd: "/", timeout_ms: TIMEOUT_MS }
    const { stdout, survivors, duration_ms } = yield* processes.run(CallId.make(`s-1-1-${index}`), command)
    const others = readProcessTable().entries.filter(({ pid }) => pid !== 1 && pid !== process.pid)
    const left = others.length - 1
    const slow = duration_ms > TIMEOUT_MS + 10_000
    yield* Console.log(JSON.stringify({ script, stdout: stdout.text, survivors, left, slow, duration_ms }))
  }
  yield* Fiber.interrupt(beside)
})

await Effect.runPromise(Effect.provide(program, ProcessRunner.layer({ ownsPidNamespace: true })))
