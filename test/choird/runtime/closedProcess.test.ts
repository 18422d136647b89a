/** What code could do that took over a process for foreign bytes: it is tried by programs below it, which Node's permissions do not hold. */
import { spawn } from "node:child_process"
import { chmodSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { endClosed, startClosed } from "#src/choird/runtime/closedProcess.ts"
import { temporaryFolder } from "../../support/gitRepo.ts"
import { leaveOut } from "../../support/packages.ts"
import { processesNaming } from "../../support/processes.ts"

/** Runs each command by a shell, and prints what came of it. */
const TRIES = `import { spawnSync } from "node:child_process"
import { text } from "node:stream/consumers"
const tries = JSON.parse(await text(process.stdin))
const ran = tries.map((command) => {
  const { error, status, stdout } = spawnSync("/bin/sh", ["-c", command], { encoding: "utf8" })
  return error === undefined ? [status, stdout] : [error.code, ""]
})
process.stdout.write(JSON.stringify({ env: Object.keys(process.env), ran }))
`

const listening = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly hits: () => number; readonly close: () => void }>((resume) => {
    let hits = 0
    const server = createServer((socket) => {
      hits += 1
      socket.destroy()
    })
    server.listen(0, "127.0.0.1", () =>
      resume(
        Effect.succeed({
          port: (server.address() as AddressInfo).port,
          hits: () => hits,
          close: () => void server.close()
        })
      )
    )
  }),
  ({ close }) => Effect.sync(close)
)

const isLeftOut =
  process.getuid?.() !== 0 &&
  leaveOut("the walls of a closed process", "this is an ordinary user, whose walls are bubblewrap's") !== ""

describe("a process for foreign bytes", () => {
  it.live.skipIf(isLeftOut)("has no file, memory, environment or network of choird, whatever runs in it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      chmodSync(folder, 0o700)
      const secrets = join(folder, "secrets.json")
      writeFileSync(secrets, "SECRET", { mode: 0o600 })
      const program = join(folder, "tries.mjs")
      writeFileSync(program, TRIES, { mode: 0o644 })
      const { hits, port } = yield* listening
      // Another process of choird's user is tried instead of choird, since without the walls the tries reach it.
      const victim = yield* Effect.acquireRelease(
        Effect.sync(() => spawn("sleep", ["600"], { stdio: "ignore" })),
        (sleeping) => Effect.sync(() => sleeping.kill("SIGKILL"))
      )
      const tries = [
        `cat '${secrets}'`,
        `cat /proc/${victim.pid}/environ`,
        `cat /proc/${victim.pid}/maps`,
        `head -c 1 /proc/${victim.pid}/mem`,
        `ls /proc/${victim.pid}/root/`,
        `kill -STOP ${victim.pid}`,
        `exec 3<>/dev/tcp/127.0.0.1/${port}`,
        `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}'`,
        `echo x > /tmp/choir-closed-${process.pid}; test -s /tmp/choir-closed-${process.pid} && echo WRITTEN`,
        `mount -t tmpfs none /mnt`
      ]
      const allowed = ["id -u"]
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => startClosed({ program, flags: ["--allow-child-process"] })),
        (child) => Effect.sync(() => endClosed(child))
      )
      child.stdin?.end(JSON.stringify([...tries, ...allowed]))
      const { env, ran } = JSON.parse(
        yield* Effect.promise(async () => (child.stdout === null ? "" : text(child.stdout)))
      ) as {
        readonly env: ReadonlyArray<string>
        readonly ran: ReadonlyArray<readonly [status: unknown, stdout: string]>
      }
      assert.deepStrictEqual(
        env.filter((name) => name !== "PATH" && name !== "PWD"),
        []
      )
      for (const [index, command] of tries.entries()) {
        const [status, stdout] = ran[index] ?? [0, "nothing"]
        assert.strictEqual(stdout, "", command)
        assert.notStrictEqual(status, 0, command)
      }
      assert.strictEqual(hits(), 0)
      if (process.getuid?.() === 0) assert.isAbove(Number(ran.at(-1)?.[1]), 1_900_000_000)
    }).pipe(Effect.scoped)
  )

  it.live("ends with all below it", () =>
    Effect.gen(function* () {
      const program = join(yield* temporaryFolder, "forever.mjs")
      writeFileSync(program, `process.stdout.write("here")\nsetInterval(() => undefined, 1000)\n`)
      const child = startClosed({ program, flags: [] })
      yield* Effect.callback<void>((resume) => void child.stdout?.once("data", () => resume(Effect.void)))
      const ended = Effect.callback<void>((resume) => void child.once("exit", () => resume(Effect.void)))
      endClosed(child)
      yield* ended
      assert.deepStrictEqual(processesNaming(program), [])
    }).pipe(Effect.scoped)
  )
})
