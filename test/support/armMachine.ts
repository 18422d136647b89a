/**
 * Runs the few instructions of arm64 that Choir's own program has, on a machine of another kind. It knows them by the architecture's manual, and
 * refuses all others.
 */

/** A system call of the program: its number, and the registers in which arguments are. */
export interface ArmCall {
  readonly number: number
  readonly values: ReadonlyArray<bigint>
}

interface ArmMachine {
  /** The file, which lies in memory at `base`. */
  readonly file: Buffer
  readonly base: number
  readonly entry: number
  /** Words of the stack from its pointer on. */
  readonly stack: ReadonlyArray<bigint>
  /** The byte at an address that is neither in the file nor on the stack. */
  byteAt(address: bigint): number
  /** What the kernel answers; `undefined` ends the program. */
  answer(call: ArmCall, stack: (offset: number) => bigint): bigint | undefined
}

const STEPS_MAX = 500
const ZERO = 31
const signed = (value: number, bits: number) => (value << (32 - bits)) >> (32 - bits)

/** @returns the calls that it made. */
export const runArm = ({ answer, base, byteAt, entry, file, stack }: ArmMachine): ReadonlyArray<ArmCall> => {
  const registers = Array.from({ length: 31 }, () => 0xdeadbeefdeadbeefn)
  const words = new Map(stack.map((word, index) => [8 * index, word]))
  const word = (offset: number) => words.get(offset) ?? 0n
  const get = (register: number) => (register === ZERO ? 0n : (registers[register] ?? 0n))
  const set = (register: number, value: bigint) => void (registers[register] = BigInt.asUintN(64, value))
  const made: Array<ArmCall> = []
  let compared = 0n
  let at = entry
  /** An address is known by what it is relative to: the stack pointer is 2^48. */
  const SP = 1n << 48n
  const load = (address: bigint) => word(Number(address - SP))

  for (let steps = 0; steps < STEPS_MAX; steps++) {
    const code = file.readUInt32LE(at - base)
    const [rd, rn, rm] = [code & 31, (code >>> 5) & 31, (code >>> 16) & 31]
    const far19 = signed((code >>> 5) & 0x7ffff, 19) * 4
    const far14 = signed((code >>> 5) & 0x3fff, 14) * 4
    const imm12 = BigInt((code >>> 10) & 0xfff)
    const imm9 = signed((code >>> 12) & 0x1ff, 9)
    const fromBase = rn === ZERO ? SP : get(rn)
    let next = at + 4
    if (code >>> 21 === 0x694) set(rd, BigInt((code >>> 5) & 0xffff)) // movz, no shift
    else if (code >>> 21 === 0x795) set(rd, (get(rd) & 0xffffn) | (BigInt((code >>> 5) & 0xffff) << 16n)) // movk, lsl #16
    else if ((code & 0xffe0ffe0) >>> 0 === 0xaa0003e0) set(rd, get(rm)) // mov
    else if (code >>> 22 === 0x244) set(rd, fromBase + imm12) // add, immediate
    else if (code >>> 22 === 0x344) set(rd, fromBase - imm12) // sub, immediate
    else if ((code & 0xffe0fc00) >>> 0 === 0x8b206c00) set(rd, fromBase + (get(rm) << 3n)) // add, uxtx #3
    else if (code >>> 22 === 0x3c4 && rd === ZERO) compared = BigInt.asIntN(64, get(rn)) - imm12 // cmp
    else if (code >>> 22 === 0x3e5) set(rd, load(fromBase + 8n * imm12)) // ldr, 64 bits
    else if (code >>> 22 === 0xe5) set(rd, BigInt(byteAt(get(rn) + imm12))) // ldrb
    else if (code >>> 21 === 0x5c0 && ((code >>> 10) & 3) === 0)
      words.set(Number(fromBase - SP) + imm9, get(rd) & 0xffffffffn) // stur w
    else if (code >>> 21 === 0x7c0 && ((code >>> 10) & 3) === 0) words.set(Number(fromBase - SP) + imm9, get(rd)) // stur x
    else if (code >>> 24 === 0xb5) next = get(rd) === 0n ? next : at + far19 // cbnz
    else if (code >>> 24 === 0x54 && rd === 0b1011) next = compared < 0n ? at + far19 : next // b.lt
    else if (code >>> 24 === 0xb7 || code >>> 24 === 0x36) {
      const bit = BigInt(((code >>> 31) << 5) | ((code >>> 19) & 31))
      const isSet = ((get(rd) >> bit) & 1n) === 1n
      next = isSet === (code >>> 24 === 0xb7) ? at + far14 : next // tbnz, tbz
    } else if ((code & 0xffe0fc00) >>> 0 === 0x9a80a000) set(rd, compared >= 0n ? get(rn) : get(rm)) // csel, ge
    else if (code === 0xd4000001) {
      const call = { number: Number(get(8)), values: registers.slice(0, 6) }
      made.push(call)
      const answered = answer(call, word)
      if (answered === undefined) return made
      set(0, answered)
    } else throw new Error(`no such instruction at 0x${at.toString(16)}: 0x${code.toString(16)}`)
    at = next
  }
  throw new Error("the program has no end")
}
