/**
 * Classic BPF programs for seccomp(2): their instructions, and what of the system both filters that Choir writes look at. Numbers are those
 * of arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
 */

export type Architecture = "x64" | "arm64"

export const AUDIT_ARCH = { x64: 0xc000003e, arm64: 0xc00000b7 } as const
export const SOCKET = { x64: 41, arm64: 198 } as const
/** Numbers from here on are the x32 variant, which would pass by every comparison. */
export const X32_FIRST = 0x40000000

export const EPERM = 1
export const ENOSYS = 38
/** Offsets in `struct seccomp_data`; arguments are 64 bits, of which the kernel looks at the low half in these calls. */
export const NUMBER_AT = 0
export const ARCHITECTURE_AT = 4
export const ARGUMENT_AT = (index: number) => 16 + 8 * index
/** The other half, which counts where an argument is an address. */
export const ARGUMENT_HIGH_AT = (index: number) => ARGUMENT_AT(index) + 4

const instruction = (code: number, whenTrue: number, whenFalse: number, operand: number) => {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(whenTrue, 2)
  bytes.writeUInt8(whenFalse, 3)
  bytes.writeUInt32LE(operand >>> 0, 4)
  return bytes
}
export const load = (offset: number) => instruction(0x20, 0, 0, offset)
export const ifEqual = (value: number, whenTrue: number, whenFalse: number) =>
  instruction(0x15, whenTrue, whenFalse, value)
export const ifAtLeast = (value: number, whenTrue: number, whenFalse: number) =>
  instruction(0x35, whenTrue, whenFalse, value)
export const ifAnyBit = (bits: number, whenTrue: number, whenFalse: number) =>
  instruction(0x45, whenTrue, whenFalse, bits)
/** Clears these bits of what was loaded. */
export const without = (bits: number) => instruction(0x54, 0, 0, ~bits)
const answer = (action: number) => instruction(0x06, 0, 0, action)
export const ALLOW = answer(0x7fff0000)
export const KILL = answer(0x80000000)
export const fail = (errno: number) => answer(0x00050000 | errno)
