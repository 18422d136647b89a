/**
 * A program that becomes another one without a network: `choir-agent.offline COMMAND ARGUMENT…` gives itself the filter of
 * {@link offlineFilterFor}, which every process below it keeps, and runs the command, whose path is whole. No program that every host has can do that, so the
 * build writes this one: an ELF file of one segment, with the machine code below.
 */
import {
  ALLOW,
  ARCHITECTURE_AT,
  AUDIT_ARCH,
  EPERM,
  ENOSYS,
  fail,
  ifAtLeast,
  ifEqual,
  KILL,
  load,
  NUMBER_AT,
  SOCKET,
  X32_FIRST,
  type Architecture
} from "./bpf.ts"

const IO_URING_SETUP = 425
const ENETUNREACH = 101

/**
 * A further filter, for a program that must not reach any network: it can open no socket, by no way. It does not depend on the sandbox's
 * own, so that it holds in each runtime.
 */
export const offlineFilterFor = (architecture: Architecture): Buffer =>
  Buffer.concat(
    [
      [load(ARCHITECTURE_AT), ifEqual(AUDIT_ARCH[architecture], 1, 0), KILL],
      [load(NUMBER_AT)],
      architecture === "x64" ? [ifAtLeast(X32_FIRST, 0, 1), fail(EPERM)] : [],
      [ifEqual(SOCKET[architecture], 0, 1), fail(ENETUNREACH), ifEqual(IO_URING_SETUP, 0, 1), fail(ENOSYS), ALLOW]
    ].flat()
  )

/** Where the segment is in memory. */
const BASE = 0x400000
const CODE_AT = 0x78
/** A `struct sock_fprog`, whose address is in the code, and then its filter. */
const PROGRAM_AT = 0x100
const FILTER_AT = 0x110

/**
 * prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BASE + PROGRAM_AT);
 * execve(argv[1], argv + 1, envp); and, when one of them fails, exit(126).
 */
const CODE: Readonly<Record<Architecture, ReadonlyArray<string>>> = {
  x64: [
    "31d2 4531d2 4531c0", // xor edx,edx; xor r10d,r10d; xor r8d,r8d
    "bf26000000 be01000000 b89d000000 0f05", // mov edi,38; mov esi,1; mov eax,157; syscall
    "85c0 7532", // test eax,eax; jnz exit
    "bf16000000 be02000000 ba00014000 b89d000000 0f05", // mov edi,22; mov esi,2; mov edx,0x400100; mov eax,157; syscall
    "85c0 7518", // test eax,eax; jnz exit
    "488b0c24 488d742410 488b3e", // mov rcx,[rsp]; lea rsi,[rsp+16]; mov rdi,[rsi]
    "488d54cc10 b83b000000 0f05", // lea rdx,[rsp+rcx*8+16]; mov eax,59; syscall
    "bf7e000000 b83c000000 0f05" // exit: mov edi,126; mov eax,60; syscall
  ],
  arm64: [
    "c00480d2 210080d2 020080d2 030080d2 040080d2", // mov x0,#38; mov x1,#1; mov x2,#0; mov x3,#0; mov x4,#0
    "e81480d2 010000d4 c00100b5", // mov x8,#167; svc #0; cbnz x0,exit
    "c00280d2 410080d2 022080d2 0208a0f2", // mov x0,#22; mov x1,#2; mov x2,#0x100; movk x2,#0x40,lsl #16
    "010000d4 000100b5", // svc #0; cbnz x0,exit
    "e90340f9 e1430091 200040f9", // ldr x9,[sp]; add x1,sp,#16; ldr x0,[x1]
    "e26f298b 42400091 a81b80d2 010000d4", // add x2,sp,x9,lsl #3; add x2,x2,#16; mov x8,#221; svc #0
    "c00f80d2 a80b80d2 010000d4" // exit: mov x0,#126; mov x8,#93; svc #0
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

export const offlineProgramFor = (architecture: Architecture): Buffer => {
  const filter = offlineFilterFor(architecture)
  const file = Buffer.alloc(FILTER_AT + filter.length)
  header(architecture, file.length).copy(file)
  file.write(CODE[architecture].join("").replaceAll(" ", ""), CODE_AT, "hex")
  file.writeUInt16LE(filter.length / 8, PROGRAM_AT)
  file.writeBigUInt64LE(BigInt(BASE + FILTER_AT), PROGRAM_AT + 8)
  filter.copy(file, FILTER_AT)
  return file
}

/** The program for this machine, or `undefined` where none was written: commands there cannot be kept from the network. */
export const offlineProgram = (): Buffer | undefined =>
  process.arch === "x64" || process.arch === "arm64" ? offlineProgramFor(process.arch) : undefined
