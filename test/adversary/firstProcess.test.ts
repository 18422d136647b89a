/** A command that looks for a process which outlives it: the first one of the sandbox, or one that nobody owns. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sandboxes, startAgent } from "../support/sandboxedAgent.ts"
import { LIVE } from "../choird/runtime/rig.ts"
import { sandboxReason } from "../choird/runtime/runtimes.ts"

/** Where the first process is in its program, and a write there: what planting code into it takes. */
const PLANT = [
  "open my $at, '<', '/proc/1/syscall' or print qq(no position: $!\\n);",
  "open my $maps, '<', '/proc/1/maps' or print qq(no map: $!\\n);",
  "open my $memory, '+<', '/proc/1/mem' or print qq(no memory: $!\\n);",
  "print qq(PLANTED\\n) if $memory && sysseek($memory, 0x400000, 0) && syswrite($memory, qq(\\xcc));"
].join(" ")

describe.skipIf(sandboxReason !== undefined)("a command and the first process of its sandbox", LIVE, () => {
  const { inside } = sandboxes()

  it.live("cannot find the place in it where planted code would run, nor write there", () =>
    Effect.gen(function* () {
      const { agent } = yield* startAgent
      const answer = yield* agent.sh(`perl -e "${PLANT.replaceAll("$", "\\$")}"`)
      assert.deepStrictEqual(answer.split("\n"), [
        "no position: Permission denied",
        "no map: Permission denied",
        "no memory: Permission denied"
      ])
    }).pipe(inside)
  )

  it.live("cannot stop it, end it or fill the sandbox with processes that it does not wait for", () =>
    Effect.gen(function* () {
      const { agent } = yield* startAgent
      const signals = "HUP INT QUIT TERM USR1 USR2 CHLD ALRM PIPE STOP TSTP KILL SEGV"
      yield* agent.sh(`for signal in ${signals}; do kill -$signal 1; done`)
      // More orphans than the sandbox may have processes at once.
      yield* agent.sh("for i in $(seq 300); do (true &); done")
      yield* agent.sh("while cat /proc/[0-9]*/status 2>/dev/null | grep -q '^State:.Z'; do sleep 0.1; done")
    }).pipe(inside)
  )

  it.live("ends the sandbox with the agent, as the agent ended", () =>
    Effect.gen(function* () {
      const { agent, container } = yield* startAgent
      yield* agent.sh("setsid -f sleep 1000 >/dev/null 2>&1")
      yield* Effect.forkScoped(agent.ask("setTimeout(() => process.exit(9), 0)"))
      assert.deepStrictEqual(yield* container.exit, { code: 9, signal: null, reason: "exited" })
    }).pipe(inside)
  )
})

const NAMESPACE = ["--pid", "--fork", "--mount-proc", "--kill-child"]
/** An ordinary user gets a pid namespace inside a user namespace. */
const unshared = (...command: ReadonlyArray<string>) =>
  spawnSync("unshare", [...(process.getuid?.() === 0 ? [] : ["--map-root-user"]), ...NAMESPACE, ...command], {
    encoding: "utf8"
  })

describe("a process that belongs to no call", () => {
  it("is gone before a tool that gets secrets starts", () => {
    const script = join(import.meta.dirname, "../support/strayBesideSecrets.ts")
    const { stderr, stdout } = unshared("/bin/sh", "-c", '"$0" "$1"; exit $?', process.execPath, script)
    assert.strictEqual(stdout.trim(), "0\nsecret", stderr)
  })
})
