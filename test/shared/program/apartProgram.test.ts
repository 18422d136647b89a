/** The program that starts commands apart: on this machine by running it, for arm64 by a machine of the test. */
import { spawnSync } from "node:child_process"
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import {
  APART_FOLDERS_MAX,
  ApartMode,
  apartProgramFor,
  FOLDERS_FROM,
  modeText
} from "#src/shared/program/apartProgram.ts"
import { offlineFilterFor } from "#src/shared/program/offlineFilter.ts"
import { APART, APART_PROGRAM } from "../../support/apartProgram.ts"
import { type ArmCall, runArm } from "../../support/armMachine.ts"

const { DOMAIN, FOLDERS, OFFLINE, SCOPED } = ApartMode
const BASE = 0x400000
const ENTRY = BASE + 0x78
const SP = 1n << 48n

const run = (...args: ReadonlyArray<string>) => spawnSync(APART_PROGRAM, args, { env: {}, encoding: "utf8" })

describe("the program that starts commands apart", () => {
  it("says which Landlock the kernel has, and by its exit that a command cannot be run", () => {
    const { status } = run()
    assert.strictEqual((status ?? 0) >= 6, APART.level === "full")
    assert.strictEqual(run("1").status, status)
    assert.strictEqual(run("1", "/does/not/exist").status, 126)
  })

  it("hands on arguments, environment and exit", () => {
    for (const mode of [0, OFFLINE, DOMAIN, SCOPED, OFFLINE + SCOPED])
      assert.strictEqual(run(String(mode), "/bin/sh", "-c", 'exit "$1"', "sh", "7").status, 7, `mode ${mode}`)
    const { stdout } = spawnSync(APART_PROGRAM, ["1", "/usr/bin/env"], { env: { A: "b", C: "d" }, encoding: "utf8" })
    assert.strictEqual(stdout, "A=b\nC=d\n")
  })

  it("lets a command write below the folders that it is handed, and nowhere else", () => {
    const root = mkdtempSync(join(tmpdir(), "choir-folders-"))
    for (const name of ["mine", "other"]) mkdirSync(join(root, name))
    writeFileSync(join(root, "other/there"), "as it was")
    const mine = openSync(join(root, "mine"), constants.O_RDONLY | constants.O_DIRECTORY)
    const devices = openSync("/dev", constants.O_RDONLY | constants.O_DIRECTORY)
    const tried = [
      "cd mine && echo x > a && mkdir b && mv a b/c && ln b/c d && rm d && ls b",
      "cat ../other/there",
      'for fd in 4 5 6 64 65; do [ -e "/proc/self/fd/$fd" ] && echo "open: $fd"; done',
      ...[
        "echo y > ../other/new",
        "echo y > ../other/there",
        "rm ../other/there",
        "mkdir ../made",
        "mv b/c ../other/c",
        "ln ../other/there e",
        ": > ../other/there",
        "truncate -s 0 ../other/there"
      ].map((act) => `(${act}) 2>/dev/null && echo "DONE ${act}"`)
    ].join("; ")
    try {
      for (const mode of [FOLDERS, FOLDERS + OFFLINE]) {
        const ran = spawnSync(APART_PROGRAM, [modeText(mode), "/bin/sh", "-c", tried], {
          cwd: root,
          env: { PATH: "/bin:/usr/bin" },
          encoding: "utf8",
          stdio: ["ignore", "pipe", "pipe", "ignore", mine, devices]
        })
        assert.strictEqual(ran.stdout, "c\nas it was", ran.stderr)
        assert.strictEqual(readFileSync(join(root, "other/there"), "utf8"), "as it was")
        rmSync(join(root, "mine/b"), { recursive: true })
      }
    } finally {
      for (const folder of [mine, devices]) closeSync(folder)
      rmSync(root, { recursive: true })
    }
  })

  it("keeps a command in a domain that moves files, and sees what it started itself", () => {
    const moves = "cd $(mktemp -d) && mkdir a b && echo x > a/f && mv a/f b/f && ln b/f a/g && cat a/g"
    const sees = "sleep 60 & cat /proc/$!/environ >/dev/null && kill $! && echo seen"
    for (const mode of [DOMAIN, SCOPED, OFFLINE + SCOPED])
      assert.strictEqual(run(String(mode), "/bin/sh", "-c", `${moves}; ${sees}`).stdout, "x\nseen\n", `mode ${mode}`)
  })
})

for (const architecture of ["x64", "arm64"] as const)
  describe(`its file, for ${architecture}`, () => {
    const program = apartProgramFor(architecture)

    it("holds its filter", () => {
      const filter = offlineFilterFor(architecture)
      assert.strictEqual(program.readUInt16LE(0x800), filter.length / 8)
      assert.strictEqual(Number(program.readBigUInt64LE(0x808)), BASE + 0x850)
      assert.isTrue(program.subarray(0x850).equals(filter))
    })

    it("asks for the scopes of signals and abstract sockets, or for the right to move files", () => {
      const words = [0x810, 0x818, 0x820, 0x828].map((at) => Number(program.readBigUInt64LE(at)))
      assert.deepStrictEqual(words, [0, 0, 0b11, 1 << 13])
      assert.strictEqual(program.toString("latin1", 0x830, 0x838), "/\0\0\0\0\0\0\0")
    })
  })

/** Calls by their numbers in arm64, with as many of their arguments as count. */
const NAMES: Readonly<Record<number, readonly [name: string, arguments: number]>> = {
  167: ["prctl", 3],
  444: ["landlock_create_ruleset", 3],
  445: ["landlock_add_rule", 4],
  446: ["landlock_restrict_self", 2],
  56: ["openat", 3],
  221: ["execve", 3],
  93: ["exit", 1],
  25: ["fcntl", 3],
  57: ["close", 1]
}
const RULESET = 5n
const ROOT = 6n
/** The first copy of a folder's descriptor. */
const COPY = 20n

const shown = ({ number, values }: ArmCall): string => {
  const [name = "", count = 0] = NAMES[number] ?? [`call ${number}`]
  const words = values.slice(0, count).map((value) => {
    if (value >= SP - 4096n && value < SP + 4096n) return `sp${value < SP ? value - SP : `+${value - SP}`}`
    return value >= BigInt(BASE) && value < BigInt(BASE + 4096)
      ? `file+${(value - BigInt(BASE)).toString(16)}`
      : `${value}`
  })
  return `${name}(${words.join(", ")})`
}

/** The calls of the program for arm64 with this mode. @param failing the name of a call that fails. */
const armCalls = (mode: number | undefined, failing?: string, pair: Array<bigint> = [], folders = 0) => {
  const program = apartProgramFor("arm64")
  const ARGUMENT = 77n
  const calls = runArm({
    file: program,
    base: BASE,
    entry: ENTRY,
    stack: mode === undefined ? [1n, 70n, 0n] : [4n, 70n, ARGUMENT, 80n, 90n, 0n, 100n],
    byteAt: (address) => (address === ARGUMENT ? modeText(mode ?? 0).charCodeAt(0) : 0),
    answer: (call, stack) => {
      const name = NAMES[call.number]?.[0] ?? ""
      if (name === "exit") return undefined
      if (name === failing || name === "execve") return -1n
      if (name === "landlock_add_rule") pair.push(stack(-16), stack(-8))
      if (name === "fcntl") {
        const slot = Number(call.values[0]) - FOLDERS_FROM
        return slot < folders ? COPY + BigInt(slot) : -1n
      }
      return name === "landlock_create_ruleset" ? RULESET : name === "openat" ? ROOT : 0n
    }
  })
  return calls.map(shown)
}

describe("the program for arm64", () => {
  const first = "prctl(38, 1, 0)"
  const last = ["execve(80, sp+24, sp+48)", "exit(126)"]
  const offline = "prctl(22, 2, file+800)"
  const scoped = ["landlock_create_ruleset(file+810, 24, 0)", "landlock_restrict_self(5, 0)"]
  const domain = [
    "landlock_create_ruleset(file+828, 8, 0)",
    // AT_FDCWD as 32 bits, O_PATH and O_CLOEXEC.
    "openat(4294967196, file+830, 2621440)",
    "landlock_add_rule(5, 1, sp-16, 0)",
    "landlock_restrict_self(5, 0)"
  ]

  it("makes the calls of each mode, with the arguments that the kernel expects", () => {
    assert.deepStrictEqual(armCalls(0), [first, ...last])
    assert.deepStrictEqual(armCalls(OFFLINE), [first, offline, ...last])
    assert.deepStrictEqual(armCalls(SCOPED), [first, ...scoped, ...last])
    assert.deepStrictEqual(armCalls(SCOPED + OFFLINE), [first, ...scoped, offline, ...last])
    const pair: Array<bigint> = []
    assert.deepStrictEqual(armCalls(DOMAIN + OFFLINE, undefined, pair), [first, ...domain, offline, ...last])
    assert.deepStrictEqual(pair, [BigInt(1 << 13), ROOT])
  })

  it("gives back the right to write below each folder that it was handed, and closes that", () => {
    const rights = BigInt([1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].reduce((sum, bit) => sum + 2 ** bit, 0))
    for (const folders of [0, 1, 3, APART_FOLDERS_MAX]) {
      const pair: Array<bigint> = []
      const made = armCalls(FOLDERS, undefined, pair, folders)
      assert.deepStrictEqual(made, [
        first,
        "landlock_create_ruleset(file+838, 24, 0)",
        ...Array.from({ length: folders }, (_, index) => [
          `fcntl(${4 + index}, 1030, 64)`,
          "landlock_add_rule(5, 1, sp-16, 0)",
          `close(${4 + index})`
        ]).flat(),
        ...(folders === APART_FOLDERS_MAX ? [] : [`fcntl(${4 + folders}, 1030, 64)`]),
        "landlock_restrict_self(5, 0)",
        ...last
      ])
      assert.deepStrictEqual(pair, Array.from({ length: folders }, (_, index) => [rights, COPY + BigInt(index)]).flat())
    }
  })

  it("runs nothing once a call has failed", () => {
    for (const [mode, ...calls] of [
      [SCOPED, "prctl", "landlock_create_ruleset", "landlock_restrict_self"],
      [DOMAIN, "landlock_create_ruleset", "openat", "landlock_add_rule", "landlock_restrict_self"],
      [OFFLINE, "prctl"],
      [FOLDERS, "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"]
    ] as const)
      for (const failing of calls) {
        const made = armCalls(mode, failing, [], 1)
        assert.strictEqual(made.at(-1), "exit(126)")
        assert.isTrue(made.at(-2)?.startsWith(`${failing}(`), `${mode} ${failing}`)
      }
  })

  it("exits with the version without a command, and with 0 where there is none", () => {
    assert.deepStrictEqual(armCalls(undefined), ["landlock_create_ruleset(0, 0, 1)", "exit(5)"])
    assert.strictEqual(armCalls(undefined, "landlock_create_ruleset").at(-1), "exit(0)")
  })
})
