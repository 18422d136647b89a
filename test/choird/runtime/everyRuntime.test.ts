import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope, Stream } from "effect"
import { chownSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { leaveOut, whyNotRoot } from "../../support/packages.ts"
import { describeRuntimes } from "./runtimes.ts"

const notRoot = whyNotRoot("a workspace that is a person's")

describeRuntimes("a runtime", ({ gone, home, inside, lacks, rig, type }) => {
  const hasWalls = lacks.walls === undefined

  const started = Effect.fnUntraced(function* (agent?: string) {
    const made = yield* rig(agent)
    const runtime = yield* ContainerRuntime
    const container = yield* runtime.start(made.spec)
    return { ...made, runtime, container, agent: yield* made.connected }
  })

  it.live("says what it is, what it does not have, and which limits it does not enforce", () =>
    Effect.gen(function* () {
      const runtime = yield* ContainerRuntime
      const { isolation, limits, type: said, warnings } = yield* runtime.status
      assert.deepStrictEqual([runtime.type, said], [type, type])
      const words = [isolation, ...warnings].join("\n")
      for (const lack of Object.values(lacks)) assert.match(words, lack)
      for (const [name, enforced] of Object.entries(limits))
        assert.strictEqual(words.includes(`${name} is not enforced`), !enforced)
    }).pipe(inside)
  )

  it.live("tells of an exit with its code, and of a death by a signal (R7)", () =>
    Effect.gen(function* () {
      const one = yield* started("one")
      yield* Effect.forkScoped(one.agent.ask("setTimeout(() => process.exit(7), 0)"))
      assert.deepStrictEqual(yield* one.container.exit, { code: 7, signal: null, reason: "exited" })
      const two = yield* started("two")
      yield* Effect.forkScoped(two.agent.ask("process.kill(process.pid, 'SIGSEGV')"))
      assert.deepStrictEqual(yield* two.container.exit, { code: null, signal: "SIGSEGV", reason: "signalled" })
    }).pipe(inside)
  )

  it.live("says of a container whether it runs or is gone, also before its exit was told (E8)", () =>
    Effect.gen(function* () {
      const { agent, container } = yield* started()
      assert.strictEqual(yield* container.condition, "running")
      yield* Effect.forkScoped(agent.ask("process.kill(process.pid, 'SIGSEGV')"))
      yield* container.exit
      assert.strictEqual(yield* container.condition, "gone")
    }).pipe(inside)
  )

  it.live("kills with everything that the agent started, and has it gone when kill returns (R8, R22)", () =>
    Effect.gen(function* () {
      const { agent, container } = yield* started()
      yield* agent.sh("(setsid -f nohup sleep 1000; sleep 1000 &) >/dev/null 2>&1")
      yield* container.kill
      assert.isTrue(yield* gone(container.id))
      assert.deepStrictEqual(yield* container.exit, { code: null, signal: "SIGKILL", reason: "killed" })
      yield* container.kill
    }).pipe(inside)
  )

  it.live("kills when its scope closes, and ends what a row remembers, twice if need be (R8)", () =>
    Effect.gen(function* () {
      const made = yield* rig()
      const runtime = yield* ContainerRuntime
      const scope = yield* Scope.make()
      const { exit, id } = yield* Scope.provide(runtime.start(made.spec), scope)
      yield* made.connected
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(yield* gone(id))
      assert.strictEqual((yield* exit).reason, "killed")
      const again = yield* runtime.start({ ...made.spec, epoch: 2 })
      yield* made.connected
      yield* runtime.reap(again.id)
      assert.isTrue(yield* gone(again.id))
      yield* runtime.reap(again.id)
    }).pipe(inside)
  )

  // A plain process has no walls, and its status says so.
  if (hasWalls)
    it.live("shows an agent nothing of another agent", () =>
      Effect.gen(function* () {
        const one = yield* started("one")
        const two = yield* started("two")
        writeFileSync(join(one.spec.workspace, "private"), "")
        // What a container mounts over its /etc says who the agent itself is.
        const beside = type === "docker" ? ["group", "passwd"] : []
        assert.strictEqual(yield* two.agent.sh("ls /workspace; ls /run/choir"), ["choird.sock", ...beside].join("\n"))
        assert.include(yield* two.agent.sh(`ls ${one.spec.socket_dir}`), "No such file")
        assert.notInclude(yield* two.agent.sh("cat /proc/*/cmdline"), one.spec.session_id)
      }).pipe(inside)
    )

  it.live("holds a fork bomb and a memory hog within the limits that it says it enforces", () =>
    Effect.gen(function* () {
      const { agent, container, runtime } = yield* started()
      const { limits } = yield* runtime.status
      if (hasWalls) assert.isTrue(limits.pids)
      if (limits.pids) {
        const bomb =
          "let made = 0; for (let i = 0; i < 400; i++) { try { const c = require('child_process').spawn('sleep', ['1000']); c.on('error', () => {}); if (c.pid) made++ } catch {} } return made"
        const made = (yield* agent.ask(bomb)) as number
        assert.isAbove(made, 20)
        assert.isBelow(made, 128)
      }
      if (!limits.memory_mb)
        return void leaveOut(`a limit of memory (${type})`, "choird may not write control groups here")
      yield* Effect.forkScoped(agent.ask("const held = []; for (;;) held.push(Buffer.alloc(64 << 20, 1))"))
      assert.deepStrictEqual(yield* container.exit, { code: null, signal: "SIGKILL", reason: "out_of_memory" })
    }).pipe(inside)
  )

  it.live("passes output on by lines, and drops with a count rather than block the agent", () =>
    Effect.gen(function* () {
      const { agent, container } = yield* started()
      // One stream, since an engine passes each on by itself.
      yield* agent.ask(
        "console.error('first'); for (let i = 0; i < 5000; i++) console.error('x'.repeat(100)); return new Promise((done) => process.stderr.write('', done))"
      )
      yield* container.kill
      const lines = yield* Stream.runCollect(container.output)
      assert.strictEqual(lines[0], "first")
      assert.isAtMost(lines.length, 1002)
      const more = yield* started("one")
      yield* more.agent.ask(
        "console.log('y'.repeat(20000)); return new Promise((done) => process.stdout.write('', done))"
      )
      yield* more.container.kill
      assert.deepStrictEqual(yield* Stream.runCollect(more.container.output), [
        `${"y".repeat(16384)} (3616 bytes of this line were cut)`
      ])
    }).pipe(inside)
  )

  if (hasWalls)
    it.live("refuses a workspace that is the system's or choird's home", () =>
      Effect.gen(function* () {
        const { spec } = yield* rig()
        const runtime = yield* ContainerRuntime
        const refusal = (workspace: string) => Effect.flip(Effect.scoped(runtime.start({ ...spec, workspace })))
        for (const workspace of ["/", "/usr/share", "/tmp", "relative", "/tmp/a\0b", home, spec.socket_dir])
          assert.strictEqual((yield* refusal(workspace)).reason, "refused", workspace)
      }).pipe(inside)
    )

  if (hasWalls)
    it.live.skipIf(notRoot !== undefined)("refuses a workspace that is a person's", () =>
      Effect.gen(function* () {
        const { spec } = yield* rig()
        const runtime = yield* ContainerRuntime
        chownSync(spec.workspace, 12345, 12345)
        const { message } = yield* Effect.flip(Effect.scoped(runtime.start(spec)))
        assert.include(message, "belongs to uid 12345")
      }).pipe(inside)
    )

  it.live("empties what an agent left, and the next one works there (R41)", () =>
    Effect.gen(function* () {
      const made = yield* rig()
      const runtime = yield* ContainerRuntime
      const { socket_dir, workspace } = made.spec
      const leave = Effect.gen(function* () {
        yield* runtime.start(made.spec)
        const agent = yield* made.connected
        yield* agent.sh("mkdir -p a/b; touch a/b/c; ln -s / root; mkfifo f; chmod 000 a/b a; chmod 000 .")
      })
      yield* Effect.scoped(leave)
      assert.strictEqual((yield* Effect.flip(runtime.emptyWorkspace("/usr", []))).reason, "refused")
      yield* runtime.emptyWorkspace(workspace, [socket_dir])
      assert.deepStrictEqual(readdirSync(workspace), [])
      yield* runtime.start({ ...made.spec, epoch: 2 })
      const agent = yield* made.connected
      assert.strictEqual(yield* agent.sh("touch new && ls"), "new")
    }).pipe(inside)
  )
})
