import { assert, describe, it } from "@effect/vitest"
import { filterFor } from "#src/choird/runtime/sandbox/Seccomp.ts"
import { answerOf } from "../../../support/bpfMachine.ts"

const ALLOW = 0x7fff0000
const KILL = 0x80000000
const errno = (number: number) => 0x00050000 + number

const decide = (filter: Buffer, architecture: number, number: number, args: ReadonlyArray<number> = []): number =>
  answerOf(filter, { number, architecture, arguments: args.map(BigInt) })

describe.each([
  {
    name: "x64" as const,
    audit: 0xc000003e,
    read: 0,
    mount: 165,
    clone: 56,
    ioctl: 16,
    socket: 41,
    ptrace: 101,
    execve: 59,
    openat: 257,
    fchmodat: 268,
    modes: [90, 91, 85, 133, 83]
  },
  {
    name: "arm64" as const,
    audit: 0xc00000b7,
    read: 63,
    mount: 40,
    clone: 220,
    ioctl: 29,
    socket: 198,
    ptrace: 117,
    execve: 221,
    openat: 56,
    fchmodat: 53,
    modes: [52]
  }
])(
  "Seccomp for $name",
  ({ name, audit, read, mount, clone, ioctl, socket, ptrace, execve, openat, fchmodat, modes }) => {
    const filter = filterFor(name)
    const on = (number: number, ...args: ReadonlyArray<number>) => decide(filter, audit, number, args)

    it("lets ordinary calls pass", () => {
      for (const number of [read, execve, 500]) assert.strictEqual(on(number), ALLOW)
      assert.strictEqual(on(clone, 0x01200011), ALLOW)
      assert.strictEqual(on(ioctl, 0, 0x5413), ALLOW)
      for (const family of [1, 2, 10, 16]) assert.strictEqual(on(socket, family), ALLOW)
    })

    it("denies what leads out, by number and by argument", () => {
      for (const number of [mount, ptrace, 425, 438, 442]) assert.strictEqual(on(number), errno(1))
      assert.strictEqual(on(435), errno(38))
      for (const flag of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]) {
        assert.strictEqual(on(clone, flag + 17), errno(1))
      }
      for (const request of [0x5412, 0x541c]) assert.strictEqual(on(ioctl, 0, request), errno(1))
      for (const family of [0, 3, 17, 38, 40]) assert.strictEqual(on(socket, family), errno(97))
    })

    it("lets calls be kept apart, and the limits of other processes not be changed", () => {
      for (const landlock of [444, 445, 446]) assert.strictEqual(on(landlock), ALLOW)
      const prlimit = name === "x64" ? 302 : 261
      assert.strictEqual(on(prlimit, 0, 7), ALLOW)
      assert.strictEqual(on(prlimit, 2, 7), errno(1))
    })

    it("denies modes with the setuid or setgid bit, and reads the mode of an open only where it creates", () => {
      const O_CREAT = 0o100
      const O_TMPFILE = 0o20200000
      for (const bit of [0o4000, 0o2000]) {
        for (const flags of [O_CREAT, O_TMPFILE]) assert.strictEqual(on(openat, 0, 0, flags, bit | 0o755), errno(1))
        assert.strictEqual(on(openat, 0, 0, 0, bit | 0o755), ALLOW)
        for (const number of [fchmodat, 452]) assert.strictEqual(on(number, 0, 0, bit), errno(1))
        for (const number of modes) assert.strictEqual(on(number, 0, bit), errno(1))
      }
      assert.strictEqual(on(openat, 0, 0, O_CREAT, 0o1777), ALLOW)
      assert.strictEqual(on(fchmodat, 0, 0, 0o1777), ALLOW)
      for (const number of modes) assert.strictEqual(on(number, 0, 0o755), ALLOW)
      assert.strictEqual(on(437), errno(38))
    })

    it("kills a process that speaks for another architecture, and denies the x32 variant", () => {
      assert.strictEqual(decide(filter, 0x40000003, read), KILL)
      if (name === "x64") assert.strictEqual(on(0x40000000 + read), errno(1))
    })
  }
)
