/** A command that must not reach a network, and looks for one all the same. */
import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ApartMode } from "#src/shared/program/apartProgram.ts"
import { coreLane, JobName } from "#schema/Ids.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { externalTool } from "../support/externalTool.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, says } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool } from "../support/testing/TestAgent.ts"
import { listenAbstract } from "../support/abstractEar.ts"
import { sandboxes, startAgent } from "../support/sandboxedAgent.ts"
import { temporaryWorkspace, toolServices } from "../support/workspace.ts"
import { LIVE } from "../choird/runtime/rig.ts"
import { sandboxReason } from "../choird/runtime/runtimes.ts"

const arm = process.arch === "arm64"
const call = (x64: number, arm64: number, ...args: ReadonlyArray<string>) =>
  `perl -e '@a = (${args.join(", ")}); print syscall(${arm ? arm64 : x64}, @a) >= 0 ? "REACHED" : "errno " . ($!+0)'`

/** A listener of this host, by TCP and by an abstract name, and who connected. */
const listening = Effect.gen(function* () {
  let connected = 0
  const listen = Effect.fnUntraced(function* (at: number | string) {
    const server = yield* Effect.acquireRelease(
      // A shell that ends without reading what it is told resets the connection.
      Effect.sync(() => createServer((socket) => void (connected++, socket.on("error", () => undefined).end("hello")))),
      (server) => Effect.sync(() => server.close())
    )
    yield* Effect.callback<void>((resume) => {
      if (typeof at === "number") server.listen(at, "127.0.0.1", () => resume(Effect.void))
      else server.listen(at, () => resume(Effect.void))
    })
    return server.address()
  })
  const address = yield* listen(0)
  const name = `choir-test-${process.pid}-${Math.trunc(performance.now())}`
  yield* listen(`\0${name}`)
  const ear = yield* listenAbstract(`${name}-ear`)
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { port, name, connected: () => connected, heard: ear.heard }
})

/** Ways to a network; each prints REACHED when it has one. */
const ways = ({
  name,
  port
}: {
  readonly port: number
  readonly name: string
}): ReadonlyArray<readonly [string, string]> => [
  ["the shell's own", `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && echo REACHED'`],
  ["UDP", `bash -c 'echo x >/dev/udp/127.0.0.1/${port} && echo REACHED'`],
  ["Python", `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port})); print("REACHED")'`],
  ["IPv6", `python3 -c 'import socket; socket.socket(socket.AF_INET6); print("REACHED")'`],
  [
    "an abstract name",
    `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("\\0${name}"); print("REACHED")'`
  ],
  ["a child that left its session", `setsid -w bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && echo REACHED'`],
  ["a wiped environment", `env -i /bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && echo REACHED'`],
  ["the system call", call(41, 198, "2", "1", "0")],
  ["netlink", call(41, 198, "16", "3", "0")],
  ["io_uring", call(425, 425, "1", "0")],
  ...pairs(`${name}-ear`)
]

/** What a program with a pair of sockets tries to reach a name by, in the words of Python; `one` and `other` are of a type that can be connected. */
const BY_PAIR: ReadonlyArray<readonly [name: string, tries: string]> = [
  ["a datagram of a pair", 'socketpair(AF_UNIX, SOCK_DGRAM)[0].sendto(b"out", DATAGRAMS)'],
  ["a message of a pair", 'socketpair(AF_UNIX, SOCK_DGRAM)[0].sendmsg([b"out"], [], 0, DATAGRAMS)'],
  ["a pair of raw sockets", "socketpair(AF_UNIX, SOCK_RAW)"],
  ["a pair of packets", "socketpair(AF_UNIX, SOCK_SEQPACKET)"],
  ["a pair of another family", "socketpair(30, SOCK_STREAM)"],
  ["a datagram of a stream", 'one.sendto(b"out", DATAGRAMS)'],
  ["a message of a stream", 'one.sendmsg([b"out"], [], 0, DATAGRAMS)'],
  ["a stream that connects", "one.connect(STREAMS)"],
  ["a stream whose pair is gone", 'other.close(); one.sendmsg([b"out"], [], 0, STREAMS)'],
  ["a stream that connects again", "libc.connect(one.fileno(), bytes(16), 16) == 0 or fail()"],
  ["a name of its own", 'one.bind("\\0" + NAME + "-back")'],
  ["a name that the kernel chooses", 'one.bind("")'],
  ["a pair that listens", "one.listen()"],
  ["a pair that accepts", "libc.accept(one.fileno(), None, None) >= 0 or fail()"]
]

const PYTHON = [
  "import ctypes, sys",
  "from socket import *",
  "libc = ctypes.CDLL(None, use_errno=True)",
  "def fail(): raise OSError(ctypes.get_errno(), 'refused')",
  "NAME = sys.argv[1]",
  'DATAGRAMS, STREAMS = "\\0" + NAME + "-datagrams", "\\0" + NAME',
  "one, other = socketpair()"
]

const pairs = (name: string): ReadonlyArray<readonly [string, string]> =>
  BY_PAIR.map(([what, tries]) => [what, `python3 -c '${[...PYTHON, tries, 'print("REACHED")'].join("\n")}' ${name}`])

const INHERITED = `perl -e 'print "echo works"' | sh`

describe.skipIf(sandboxReason !== undefined)("a command without a network in a sandbox", LIVE, () => {
  const { inside } = sandboxes()

  it.live("finds no way to one, and works otherwise", () =>
    Effect.gen(function* () {
      const { agent } = yield* startAgent
      const there = yield* listening
      const OFFLINE = `/opt/choir/choir-agent.apart ${ApartMode.OFFLINE} /bin/sh -c`
      for (const [name, way] of ways(there)) {
        const answer = yield* agent.sh(`${OFFLINE} '${way.replaceAll("'", `'\\''`)}'`)
        assert.notInclude(answer, "REACHED", name)
      }
      assert.strictEqual(there.connected(), 0)
      // With a network the same program is heard, and by then all that came before it.
      const [, datagram = ""] = ways(there).find(([name]) => name === "a datagram of a pair") ?? []
      assert.strictEqual(yield* agent.sh(datagram), "REACHED")
      yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => there.heard().length > 0 })
      assert.deepStrictEqual(there.heard(), ["heard out"])
      assert.strictEqual(yield* agent.sh(`${OFFLINE} '${INHERITED.replaceAll("'", `'\\''`)}'`), "works")
      assert.strictEqual(yield* agent.sh(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/${there.port} && cat <&3'`), "hello")
      assert.strictEqual(
        yield* agent.sh("sh -c ': >> /opt/choir/choir-agent.apart' 2>/dev/null && echo written || echo kept"),
        "kept"
      )
    }).pipe(inside)
  )
})

describe("a tool of a manifest", LIVE, () => {
  it.live("has a network only where its manifest asks for one", () =>
    Effect.gen(function* () {
      const { port } = yield* listening
      const script = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}' 2>/dev/null && echo '"reached"' || echo '"cut off"'`
      for (const [network, said] of [
        [false, "cut off"],
        [true, "reached"]
      ] as const) {
        const { run } = yield* externalTool(script, { runtime: { network } })
        assert.strictEqual((yield* run()).output, said)
      }
    })
  )
})

const asking: AgentConfig = { ...agentConfig(), approvals: { ...agentConfig().approvals, confirm_external: "tainted" } }

/** An agent that calls `commands` in turn, after it read a page where `reads` says so. */
const commanding = Effect.fnUntraced(function* (
  commands: ReadonlyArray<{ readonly command: string; readonly network?: boolean }>,
  reads: boolean
) {
  const { root } = yield* temporaryWorkspace
  const tool = yield* Effect.provideContext(exec, yield* toolServices(root, asking))
  const page = testTool("test.page", () => Effect.succeed({ status: "success", summary: "a page", untrusted: true }))
  const plane = yield* makeMemoryControlPlane
  const script = inOrder(
    ...(reads ? [calls(["test.page", {}])] : []),
    ...commands.map((input) => calls(["choir.exec", input])),
    says("done")
  )
  yield* plane.say("go")
  yield* Effect.forkScoped(runAgent({ plane, script, tools: [tool, page], config: asking }))
  const ended = () =>
    ofType(plane.events, "ToolResultCommitted").flatMap(({ payload }) =>
      payload.summary === "a page" ? [] : [payload]
    )
  return { plane, ended }
})

describe("a command of an agent whose people are asked", LIVE, () => {
  it.live("has no network unless it asks for one, and what it brings from there is untrusted", () =>
    Effect.gen(function* () {
      const there = yield* listening
      const command = `exec 3<>/dev/tcp/127.0.0.1/${there.port} && cat <&3`
      const { ended, plane } = yield* commanding([{ command }, { command, network: true }], false)
      yield* plane.until((_, state) => state.rev > 0 && quiet(state))
      const [without, with_] = ended()
      assert.deepStrictEqual([without?.status, without?.untrusted], ["error", undefined])
      assert.match(JSON.stringify(without?.output), /Network is unreachable/u)
      assert.deepStrictEqual([with_?.status, with_?.untrusted], ["success", true])
      assert.strictEqual(there.connected(), 1)
      assert.isTrue(plane.state().edge.tainted)
    }).pipe(Effect.scoped)
  )

  it.live("waits for a person before it gets one, once its lane has read a page", () =>
    Effect.gen(function* () {
      const there = yield* listening
      const command = `exec 3<>/dev/tcp/127.0.0.1/${there.port} && cat <&3`
      const { ended, plane } = yield* commanding([{ command: "echo free" }, { command, network: true }], true)
      yield* plane.until((events) => ofType(events, "ToolCallRequested").at(-1)?.payload.confirm !== undefined)
      assert.strictEqual(ended()[0]?.status, "success")
      assert.strictEqual(there.connected(), 0)
      yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => plane.approvals.length === 1 })
      const [approval] = plane.approvals
      if (approval === undefined) return assert.fail("nobody was asked")
      yield* plane.decide(approval.approval_id, "approved")
      yield* plane.until((_, state) => quiet(state))
      assert.strictEqual(there.connected(), 1)
      assert.strictEqual(ended().at(-1)?.status, "success")
    }).pipe(Effect.scoped)
  )

  it.live("is refused a network that its lane lost the right to while it waited", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      const tool = yield* Effect.provideContext(exec, yield* toolServices(root, asking))
      const prepared = yield* tool.prepare({ command: "echo x > file", network: true })
      const lane = coreLane(JobName.make("work"))
      const context = { lane, call_id: "s-1-1-0" as never, seen: () => undefined, network: false }
      assert.match((yield* prepared.run(context)).summary, /has since read text from outside/u)
    }).pipe(Effect.scoped)
  )
})
