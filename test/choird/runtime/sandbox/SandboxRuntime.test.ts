import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { spawnSync } from "node:child_process"
import {
  chownSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { afterAll } from "vitest"
import { SANDBOX_UID_FIRST, uidOf } from "#src/choird/runtime/Ownership.ts"
import { CgroupName, Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { type Condition, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { listProcesses } from "#src/choird/runtime/ProcessIdentity.ts"
import { fixFor, layer } from "#src/choird/runtime/sandbox/SandboxRuntime.ts"
import { leaveOut, whyNotRoot } from "../../../support/packages.ts"
import { escapes } from "../escapes.ts"
import { comesTrue, HostParts, isGone, LIVE, makeRig, hostId, startHolder } from "../rig.ts"
import { sandboxReason } from "../runtimes.ts"

const reason = sandboxReason
const notRoot = whyNotRoot("sandboxes that root sets up")
const isRoot = notRoot === undefined

const home = mkdtempSync("/tmp/choir-sandbox-home-")
afterAll(() => rmSync(home, { recursive: true, force: true }))
const Sandbox = layer({ home }).pipe(Layer.provideMerge(HostParts))

const started = Effect.gen(function* () {
  const rig = yield* makeRig()
  const runtime = yield* ContainerRuntime
  const container = yield* runtime.start(rig.spec)
  return { ...rig, runtime, container, agent: yield* rig.connected }
})

const readOrEmpty = (read: () => string) => {
  try {
    return read()
  } catch {
    return ""
  }
}

/** What every user of the host can see of a process, and what its owner can. */
const commandLines = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .flatMap((pid) =>
      ["cmdline", "environ"].map((file) => readOrEmpty(() => readFileSync(`/proc/${pid}/${file}`, "latin1")))
    )

/** The pid namespaces that anything still runs in. */
const namespaces = Effect.map(listProcesses, (processes) =>
  processes.map(({ pid }) => readOrEmpty(() => readlinkSync(`/proc/${pid}/ns/pid`)))
)

describe.skipIf(reason !== undefined)("SandboxRuntime", LIVE, () => {
  it.live("gives the agent its flags, its environment and nothing more", () =>
    Effect.gen(function* () {
      const { agent, spec, token } = yield* started
      assert.deepStrictEqual(agent.argv, [
        "/opt/choir/bin/node",
        "/opt/choir/choir-agent.js",
        "--control-plane=uds",
        "--socket=/run/choir/choird.sock",
        "--workspace=/workspace",
        "--choir=/choir",
        "--rg=/opt/choir/bin/rg",
        "--own-pid-namespace"
      ])
      const { PATH, PWD, ...env } = agent.env
      assert.include(PATH, "/opt/choir/bin")
      assert.strictEqual(PWD ?? "/workspace", "/workspace")
      assert.deepStrictEqual(env, {
        AGENT_ID: spec.agent_id,
        CHOIR_SESSION_ID: spec.session_id,
        CHOIR_BOOTSTRAP_TOKEN: token,
        HOME: "/tmp",
        LANG: "C.UTF-8",
        TZ: new Intl.DateTimeFormat().resolvedOptions().timeZone,
        MALLOC_ARENA_MAX: "1",
        MALLOC_TRIM_THRESHOLD_: "131072"
      })
      assert.strictEqual(agent.cwd, "/workspace")
      assert.strictEqual(
        yield* agent.sh(
          "hostname; id -u; whoami; rg --version | head -c 7; cat /choir/version.json /opt/choir/*.o200k"
        ),
        "choir\n1000\nchoir\nripgrep{}words"
      )
      assert.strictEqual(yield* agent.sh("touch /workspace/a /tmp/b /run/c /dev/shm/d && echo written"), "written")
    }).pipe(Effect.provide(Sandbox))
  )

  it.live("puts the token into no command line and no environment but the agent's own", () =>
    Effect.gen(function* () {
      const { agent, token } = yield* started
      const holding = commandLines().filter((text) => text.includes(token))
      // The agent's own and its first process's, which only root can read.
      assert.strictEqual(holding.length, isRoot ? 2 : 0)
      assert.isTrue(holding.every((text) => text.includes("AGENT_ID=")))
      assert.isTrue(
        commandLines().some((text) => text.includes("choir-agent") && text.includes("/run/choir/choird.sock"))
      )
      const open = yield* agent.ask(
        "const fs = require('fs'); return fs.readdirSync('/proc/self/fd').map((fd) => { try { return fs.readlinkSync('/proc/self/fd/' + fd) } catch { return '' } })"
      )
      // Its socket, its output (two), and what Node itself opens; a descriptor of bubblewrap would be a further socket or file.
      const foreign = (open as ReadonlyArray<string>).filter((to) => !/^(anon_inode:|pipe:|\/dev\/null|$)/u.test(to))
      assert.isTrue(
        foreign.every((to) => to.startsWith("socket:")),
        foreign.join()
      )
      assert.strictEqual(foreign.length, 3)
    }).pipe(Effect.provide(Sandbox))
  )

  it.live(`denies ${escapes(home).length} ways out (R37)`, () =>
    Effect.gen(function* () {
      const { agent } = yield* started
      for (const [name, command, expected] of escapes(home)) {
        const answer = yield* agent.sh(command)
        assert.notInclude(answer, "ESCAPED", name)
        if (expected !== undefined) assert.match(answer, expected, name)
      }
    }).pipe(Effect.provide(Sandbox))
  )

  it.live.skipIf(notRoot !== undefined)(
    "runs each agent under a uid of its own that owns its workspace and its socket (D11)",
    () =>
      Effect.gen(function* () {
        const rig = yield* makeRig()
        const runtime = yield* ContainerRuntime
        const uid = uidOf(rig.spec.agent_id, [])
        const inWorkspace = (name: string) => join(rig.spec.workspace, name)
        symlinkSync("/etc/hostname", inWorkspace("link"))
        writeFileSync(inWorkspace("linked"), "")
        linkSync(inWorkspace("linked"), join(rig.home, "outside"))
        writeFileSync(inWorkspace("of-another-agent"), "")
        chownSync(inWorkspace("of-another-agent"), SANDBOX_UID_FIRST, SANDBOX_UID_FIRST)
        writeFileSync(inWorkspace("file"), "")
        const host = statSync("/etc/hostname").uid
        const { id } = yield* runtime.start(rig.spec)
        const agent = yield* rig.connected
        const line = /^Uid:\s+(\d+)\s+(\d+)\s+(\d+)/mu
        for (const { pid } of hostId(id).processes) {
          assert.deepStrictEqual(
            line
              .exec(readFileSync(`/proc/${pid}/status`, "utf8"))
              ?.slice(1)
              .map(Number),
            [uid, uid, uid]
          )
        }
        for (const name of ["file", "of-another-agent"]) assert.strictEqual(statSync(inWorkspace(name)).uid, uid)
        assert.strictEqual(statSync(join(rig.home, "outside")).uid, 0)
        assert.strictEqual(statSync("/etc/hostname").uid, host)
        const socket = statSync(join(rig.spec.socket_dir, "choird.sock"))
        assert.deepStrictEqual([socket.uid, socket.mode & 0o777], [uid, 0o600])
        assert.deepStrictEqual(readdirSync("/run/choir"), [])
        assert.strictEqual(yield* agent.sh("echo x >> file && echo written"), "written")
      }).pipe(Effect.provide(Sandbox))
  )

  it.live("dies with a choird that is killed (R8)", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      const holder = yield* startHolder("sandbox", home, rig.spec)
      const agent = yield* rig.connected
      yield* agent.sh("setsid -f sleep 1000 >/dev/null 2>&1")
      const inner = yield* agent.sh("readlink /proc/self/ns/pid")
      process.kill(holder.pid, "SIGKILL")
      const gone = Effect.forEach(holder.id.processes, ({ pid }) => isGone(pid))
      yield* comesTrue(Effect.map(gone, (all) => all.every((one) => one)))
      assert.match(inner, /^pid:/u)
      assert.isFalse((yield* namespaces).includes(inner))
      yield* (yield* ContainerRuntime).reap(holder.id)
      assert.deepStrictEqual(yield* (yield* Cgroups).members(holder.id.cgroup), [])
    }).pipe(Effect.provide(Sandbox))
  )

  it.live("reaps a container by its recorded identity, and no process that only has its pid", () =>
    Effect.gen(function* () {
      const { container, runtime } = yield* started
      const { id } = container
      const stale = {
        ...hostId(id),
        cgroup: CgroupName.make("choir-none-1"),
        processes: hostId(id).processes.map(({ pid }) => ({ pid, start: "1" }))
      }
      yield* runtime.reap(stale)
      yield* runtime.reap({ ...hostId(id), boot_id: "another" })
      for (const { pid } of hostId(id).processes) assert.isFalse(yield* isGone(pid))
      yield* runtime.reap(id)
      for (const { pid } of hostId(id).processes) assert.isTrue(yield* isGone(pid))
      yield* runtime.reap(id)
    }).pipe(Effect.provide(Sandbox))
  )

  it.live("names a program that a sandbox cannot have", () =>
    Effect.gen(function* () {
      const { spec } = yield* makeRig()
      const runtime = yield* ContainerRuntime
      const missing = yield* Effect.flip(runtime.start({ ...spec, rg: "/nonexistent/rg" }))
      assert.include(missing.message, "/nonexistent/rg does not exist")
    }).pipe(Effect.provide(Sandbox))
  )

  // An ordinary user's bubblewrap takes a folder for a file; the mounts that root makes do not.
  it.live.skipIf(notRoot !== undefined)("says why a sandbox could not be set up", () =>
    Effect.gen(function* () {
      const { spec } = yield* makeRig()
      const runtime = yield* ContainerRuntime
      const broken = yield* Effect.flip(runtime.start({ ...spec, program: "/usr/share" }))
      assert.match(broken.message, /could not be set up: .*(mount|bwrap)/u)
    }).pipe(Effect.provide(Sandbox))
  )

  it.live("sees that a sandbox is gone whose own program cannot say so (E8)", () =>
    Effect.gen(function* () {
      const { container } = yield* started
      const [leader, init] = hostId(container.id).processes
      process.kill(leader?.pid ?? 0, "SIGSTOP")
      const is = (expected: Condition) => Effect.map(container.condition, (condition) => condition === expected)
      yield* comesTrue(is("paused"))
      process.kill(init?.pid ?? 0, "SIGKILL")
      yield* comesTrue(is("gone"))
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(container.exit, 0)))
      yield* container.kill
    }).pipe(Effect.provide(Sandbox))
  )

  it("names the fix for what a trial prints", () => {
    assert.include(fixFor("sh: 1: exec: bwrap: not found"), "apt install bubblewrap")
    assert.include(fixFor("bwrap: Unknown option --disable-userns"), "0.8")
    assert.include(fixFor("bwrap: No permissions to create new namespace"), "unprivileged_userns_clone")
    assert.include(fixFor("bwrap: setting up uid map: Permission denied"), "apparmor_restrict")
  })
})

const ORDINARY = "SandboxRuntime as an ordinary user"
const ordinaryUid = 65_533
/** The repository and Node must be readable for that user. */
const ordinaryReason = () => {
  if (reason !== undefined) return reason
  if (notRoot !== undefined) return undefined
  const test = [
    "--reuid=65533",
    "--regid=65533",
    "--clear-groups",
    "cat",
    join(import.meta.dirname, "SandboxPlan.test.ts")
  ]
  if (spawnSync("setpriv", test).status !== 0)
    return leaveOut(ORDINARY, "the repository lies below a folder that is root's alone")
  const trial = [
    "--reuid=65533",
    "--regid=65533",
    "--clear-groups",
    "bwrap",
    "--unshare-user",
    "--ro-bind",
    "/",
    "/",
    "true"
  ]
  if (spawnSync("setpriv", trial).status !== 0)
    return leaveOut(ORDINARY, "the host allows no user namespaces to ordinary users")
  return undefined
}
const uid = isRoot ? ordinaryUid : undefined

describe.skipIf(ordinaryReason() !== undefined)(ORDINARY, LIVE, () => {
  it.live(`denies the same ways out, and dies with a choird that is killed (R37)`, () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      const ownHome = mkdtempSync("/tmp/choir-sandbox-home-")
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(ownHome, { recursive: true, force: true })))
      if (uid !== undefined) spawnSync("chown", ["-R", `${uid}:${uid}`, rig.home, ownHome])
      const holder = yield* startHolder("sandbox", ownHome, rig.spec, uid)
      const agent = yield* rig.connected
      assert.isTrue(holder.status.limits.pids)
      if (isRoot) assert.isFalse(holder.status.limits.memory_mb)
      for (const [name, command, expected] of escapes(ownHome)) {
        const answer = yield* agent.sh(command)
        assert.notInclude(answer, "ESCAPED", name)
        if (expected !== undefined) assert.match(answer, expected, name)
      }
      assert.strictEqual(yield* agent.sh("touch /workspace/a /tmp/b && id -u"), "1000")
      const bomb = "for i in $(seq 300); do sleep 1000 >/dev/null 2>&1 & done"
      assert.include(yield* agent.sh(bomb), "fork")
      process.kill(holder.pid, "SIGKILL")
      const gone = Effect.forEach(holder.id.processes, ({ pid }) => isGone(pid))
      yield* comesTrue(Effect.map(gone, (all) => all.every((one) => one)))
    })
  )
})
