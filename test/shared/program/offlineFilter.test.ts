import { assert, describe, it } from "@effect/vitest"
import { AUDIT_ARCH, type Architecture } from "#src/shared/program/bpf.ts"
import { offlineFilterFor } from "#src/shared/program/offlineFilter.ts"
import { answerOf } from "../../support/bpfMachine.ts"

const ALLOWED = 0x7fff0000
const KILLED = 0x80000000
const refused = (errno: number) => 0x00050000 | errno
const [EPERM, ENOSYS, ENETUNREACH] = [1, 38, 101]

const STREAM_FLAGS = [0, 0o4000, 0o2000000, 0o2004000]

/** Numbers of the kernel's own tables, beside which the filter's stand. */
const CALLS: Readonly<Record<string, Readonly<Record<Architecture, number>>>> = {
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
  bind: { x64: 49, arm64: 200 },
  listen: { x64: 50, arm64: 201 },
  accept: { x64: 43, arm64: 202 },
  connect: { x64: 42, arm64: 203 },
  sendto: { x64: 44, arm64: 206 },
  recvfrom: { x64: 45, arm64: 207 },
  sendmsg: { x64: 46, arm64: 211 },
  accept4: { x64: 288, arm64: 242 },
  pidfd_getfd: { x64: 438, arm64: 438 },
  io_uring_setup: { x64: 425, arm64: 425 },
  io_uring_enter: { x64: 426, arm64: 426 },
  io_uring_register: { x64: 427, arm64: 427 },
  openat: { x64: 257, arm64: 56 },
  kill: { x64: 62, arm64: 129 }
}

for (const architecture of ["x64", "arm64"] as const)
  describe(`the filter of a command without a network, for ${architecture}`, () => {
    const filter = offlineFilterFor(architecture)
    const ask = (name: string, ...values: ReadonlyArray<number | bigint>) =>
      answerOf(filter, {
        number: CALLS[name]?.[architecture] ?? -1,
        architecture: AUDIT_ARCH[architecture],
        arguments: values.map(BigInt)
      })

    it("refuses whatever makes a socket or gives one a name", () => {
      for (const name of ["socket", "connect", "bind", "listen", "accept", "accept4"])
        assert.strictEqual(ask(name, 1, 1, 0), refused(ENETUNREACH), name)
      assert.strictEqual(ask("pidfd_getfd", 5, 3, 0), refused(EPERM))
      for (const name of ["io_uring_setup", "io_uring_enter", "io_uring_register"])
        assert.strictEqual(ask(name, 1), refused(ENOSYS), name)
    })

    it("lets pairs be made of streams of the UNIX family alone", () => {
      for (const flags of STREAM_FLAGS) {
        assert.strictEqual(ask("socketpair", 1, 1 | flags, 0), ALLOWED)
        for (const type of [2, 3, 4, 5, 10])
          assert.strictEqual(ask("socketpair", 1, type | flags), refused(ENETUNREACH))
        for (const family of [0, 2, 10, 16, 30, 40])
          assert.strictEqual(ask("socketpair", family, 1 | flags), refused(ENETUNREACH))
      }
      // The kernel looks at the low half alone.
      assert.strictEqual(ask("socketpair", (1n << 32n) | 1n, (7n << 32n) | 1n), ALLOWED)
      assert.strictEqual(ask("socketpair", (1n << 32n) | 2n, 1), refused(ENETUNREACH))
    })

    it("lets nothing be sent to an address, wherever that is in memory", () => {
      assert.strictEqual(ask("sendto", 3, 1, 1, 0, 0, 0), ALLOWED)
      for (const address of [1n, 0xffffffffn, 1n << 32n, 0x7fff00000000n, 1n << 63n])
        assert.strictEqual(ask("sendto", 3, 1, 1, 0, address, 16), refused(ENETUNREACH))
    })

    it("leaves everything else as it is", () => {
      for (const name of ["recvfrom", "sendmsg", "openat", "kill"]) assert.strictEqual(ask(name, 3, 1, 1), ALLOWED)
    })

    it("ends a program that makes calls of another architecture", () => {
      const other = { number: 1, arguments: [] }
      assert.strictEqual(answerOf(filter, { ...other, architecture: 0x40000003 }), KILLED)
      assert.strictEqual(answerOf(filter, { ...other, architecture: 0x40000028 }), KILLED)
      if (architecture === "x64")
        for (const number of [0x40000000 + 41, 0x40000000 + 53, 0xffffffff])
          assert.strictEqual(answerOf(filter, { number, arguments: [], architecture: AUDIT_ARCH.x64 }), refused(EPERM))
    })
  })
