/**
 * A program that becomes another one, apart from every other process: `choir-agent.apart MODE COMMAND ARGUMENT…` gives itself what MODE
 * says, which every process below it keeps, and runs the command, whose path is whole. MODE is {@link modeText} of a sum of {@link ApartMode}. Without a
 * command it exits with the version of Landlock that the kernel offers, and with 0 where there is none. No program that every host has
 * can do that, so the build writes this one: an ELF file of one segment.
 */
import type { Architecture } from "./bpf.ts"
import { machineCode, type Step } from "./machineCode.ts"
import { offlineFilterFor } from "./offlineFilter.ts"

/**
 * Parts of MODE. A Landlock domain of its own keeps it from the memory, the environment and the descriptors of processes outside
 * of it: the kernel lets a domain inspect itself and what it starts alone.
 */
export const ApartMode = {
  /** The filter of {@link offlineFilterFor}. */
  OFFLINE: 1,
  /** A domain, by a rule that takes nothing away: for kernels whose Landlock has no scopes. In it nothing can be mounted. */
  DOMAIN: 2,
  /** A domain that sends no signal out of it and connects to no abstract socket out of it. */
  SCOPED: 4,
  /**
   * In place of SCOPED: such a domain, in which nothing can be written, made, moved or removed but below the open folders that are handed on from
   * {@link FOLDERS_FROM} on, one after the other. The command does not get them. It is one domain, since each of two would take away the right to move.
   */
  FOLDERS: 8
} as const

/** The descriptor of the first folder that can be written to, and how many there are at most. */
export const FOLDERS_FROM = 4
export const APART_FOLDERS_MAX = 8

/** A mode as one character, whose lowest bits are the mode. */
export const modeText = (mode: number): string => String.fromCharCode("0".charCodeAt(0) + mode)

/** The first version of Landlock in which a domain may leave moving files from folder to folder alone. */
export const LANDLOCK_DOMAIN = 2
/** The first one with scopes. */
export const LANDLOCK_SCOPED = 6

/** How the program ends when it cannot do what it is asked to. */
const APART_FAILED = 126

/** Where the segment is in memory. */
const BASE = 0x400000
const CODE_AT = 0x78
/** After the code: a `struct sock_fprog`, two of `struct landlock_ruleset_attr`, a path, a third of those, and the filter. */
const FPROG_AT = 0x800
const SCOPED_AT = 0x810
const REFER_AT = 0x828
const ROOT_AT = 0x830
const WRITES_AT = 0x838
const FILTER_AT = 0x850

/** `struct landlock_ruleset_attr` has the handled rights for files and for the network, and the scopes. */
const SCOPED_BYTES = 24
const REFER_BYTES = 8
/** LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and LANDLOCK_SCOPE_SIGNAL. */
const SCOPES = 0b11
/** LANDLOCK_ACCESS_FS_REFER, which every domain with rules for files takes away unless a rule gives it back. */
const REFER = 1 << 13
/** The bits of the rights to write, remove, make, move and shorten files and folders: all of LANDLOCK_ACCESS_FS but to run, to read, and devices. */
const WRITE_BITS = [1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
const WRITES = WRITE_BITS.reduce((rights, bit) => rights | (1 << bit), 0)

const PR_SET_NO_NEW_PRIVS = 38
const PR_SET_SECCOMP = 22
const SECCOMP_MODE_FILTER = 2
const LANDLOCK_CREATE_RULESET_VERSION = 1
const LANDLOCK_RULE_PATH_BENEATH = 1
const AT_FDCWD = -100
/** O_PATH and O_CLOEXEC. */
const PATH_ONLY = 0o12000000
const F_DUPFD_CLOEXEC = 1030
/** Copies of descriptors are above all that are looked at. */
const COPIES_FROM = 64

const CALLS = {
  x64: { close: 3, execve: 59, exit: 60, fcntl: 72, openat: 257, prctl: 157 },
  arm64: { close: 57, execve: 221, exit: 93, fcntl: 25, openat: 56, prctl: 167 }
} as const
const CREATE_RULESET = 444
const ADD_RULE = 445
const RESTRICT_SELF = 446

const bitOf = (mode: number) => Math.log2(mode)

const call = (number: number, ...values: Extract<Step, { do: "call" }>["arguments"]): Step => ({
  do: "call",
  number,
  arguments: values
})
const label = (name: string): Step => ({ do: "label", name })
const failed = { to: "failed" } as const

/**
 * Gives back the rights below each folder that was handed on; the first descriptor that is not open ends them. The ruleset takes the descriptor
 * before the first one, which nothing else has.
 */
const folderSteps = (architecture: Architecture): ReadonlyArray<Step> => {
  const { close, fcntl } = CALLS[architecture]
  return [
    call(CREATE_RULESET, BASE + WRITES_AT, SCOPED_BYTES, 0),
    { do: "ifNegative", ...failed },
    { do: "keep" },
    ...Array.from({ length: APART_FOLDERS_MAX }, (_, index) => FOLDERS_FROM + index).flatMap(
      (folder): ReadonlyArray<Step> => [
        call(fcntl, folder, F_DUPFD_CLOEXEC, COPIES_FROM),
        { do: "ifNegative", to: "no more folders" },
        { do: "putPair", constant: WRITES },
        call(ADD_RULE, "kept", LANDLOCK_RULE_PATH_BENEATH, "pair", 0),
        { do: "unlessZero", ...failed },
        call(close, folder)
      ]
    ),
    label("no more folders"),
    call(RESTRICT_SELF, "kept", 0),
    { do: "unlessZero", ...failed }
  ]
}

const stepsFor = (architecture: Architecture): ReadonlyArray<Step> => {
  const { execve, exit, openat, prctl } = CALLS[architecture]
  return [
    { do: "begin", withoutCommand: "version" },
    call(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
    { do: "unlessZero", ...failed },

    { do: "unlessBit", bit: bitOf(ApartMode.SCOPED), to: "without scopes" },
    call(CREATE_RULESET, BASE + SCOPED_AT, SCOPED_BYTES, 0),
    { do: "ifNegative", ...failed },
    { do: "keep" },
    call(RESTRICT_SELF, "kept", 0),
    { do: "unlessZero", ...failed },
    label("without scopes"),

    { do: "unlessBit", bit: bitOf(ApartMode.DOMAIN), to: "without a domain" },
    call(CREATE_RULESET, BASE + REFER_AT, REFER_BYTES, 0),
    { do: "ifNegative", ...failed },
    { do: "keep" },
    call(openat, AT_FDCWD, BASE + ROOT_AT, PATH_ONLY, 0),
    { do: "ifNegative", ...failed },
    { do: "putPair", constant: REFER },
    call(ADD_RULE, "kept", LANDLOCK_RULE_PATH_BENEATH, "pair", 0),
    { do: "unlessZero", ...failed },
    call(RESTRICT_SELF, "kept", 0),
    { do: "unlessZero", ...failed },
    label("without a domain"),

    { do: "unlessBit", bit: bitOf(ApartMode.FOLDERS), to: "without folders" },
    ...folderSteps(architecture),
    label("without folders"),

    { do: "unlessBit", bit: bitOf(ApartMode.OFFLINE), to: "with a network" },
    call(prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BASE + FPROG_AT),
    { do: "unlessZero", ...failed },
    label("with a network"),

    { do: "become", number: execve },
    label("failed"),
    call(exit, APART_FAILED),

    label("version"),
    call(CREATE_RULESET, 0, 0, LANDLOCK_CREATE_RULESET_VERSION),
    { do: "exitWithAnswer", number: exit }
  ]
}

/** EM_X86_64 and EM_AARCH64. */
const MACHINE = { x64: 62, arm64: 183 } as const
const READ_AND_EXECUTE = 5
/** The largest page of either architecture. */
const ALIGNMENT = 0x10000

const header = (architecture: Architecture, bytes: number): Buffer => {
  const elf = Buffer.alloc(CODE_AT)
  elf.write("7f454c46020101", 0, "hex")
  elf.writeUInt16LE(2, 16) // ET_EXEC
  elf.writeUInt16LE(MACHINE[architecture], 18)
  elf.writeUInt32LE(1, 20)
  elf.writeBigUInt64LE(BigInt(BASE + CODE_AT), 24)
  elf.writeBigUInt64LE(64n, 32) // the program header's place
  elf.writeUInt16LE(64, 52)
  elf.writeUInt16LE(56, 54)
  elf.writeUInt16LE(1, 56)
  elf.writeUInt32LE(1, 64) // PT_LOAD
  elf.writeUInt32LE(READ_AND_EXECUTE, 68)
  for (const [at, value] of [
    [80, BASE],
    [88, BASE],
    [96, bytes],
    [104, bytes],
    [112, ALIGNMENT]
  ] as const)
    elf.writeBigUInt64LE(BigInt(value), at)
  return elf
}

export const apartProgramFor = (architecture: Architecture): Buffer => {
  const code = machineCode(architecture, stepsFor(architecture))
  if (CODE_AT + code.length > FPROG_AT) throw new Error(`${code.length} bytes of code do not fit before the data`)
  const filter = offlineFilterFor(architecture)
  const file = Buffer.alloc(FILTER_AT + filter.length)
  header(architecture, file.length).copy(file)
  code.copy(file, CODE_AT)
  file.writeUInt16LE(filter.length / 8, FPROG_AT)
  file.writeBigUInt64LE(BigInt(BASE + FILTER_AT), FPROG_AT + 8)
  file.writeBigUInt64LE(BigInt(SCOPES), SCOPED_AT + 16)
  file.writeBigUInt64LE(BigInt(REFER), REFER_AT)
  file.write("/", ROOT_AT)
  file.writeBigUInt64LE(BigInt(WRITES), WRITES_AT)
  file.writeBigUInt64LE(BigInt(SCOPES), WRITES_AT + 16)
  filter.copy(file, FILTER_AT)
  return file
}

/** The program for this machine, or `undefined` where none was written: commands there cannot be kept apart, nor from the network. */
export const apartProgram = (): Buffer | undefined =>
  process.arch === "x64" || process.arch === "arm64" ? apartProgramFor(process.arch) : undefined
