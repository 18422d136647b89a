/** Runs a classic BPF program of seccomp(2) on one system call, as the kernel does. */

interface SystemCall {
  readonly number: number
  readonly architecture: number
  readonly arguments: ReadonlyArray<bigint>
}

const ARGUMENTS_AT = 16

/** `struct seccomp_data`. */
const dataOf = (call: SystemCall): Buffer => {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(call.number >>> 0, 0)
  data.writeUInt32LE(call.architecture >>> 0, 4)
  for (const [index, value] of call.arguments.entries())
    data.writeBigUInt64LE(BigInt.asUintN(64, value), ARGUMENTS_AT + 8 * index)
  return data
}

/** What the program answers. An instruction that the filters of Choir do not have is an error. */
export const answerOf = (program: Buffer, call: SystemCall): number => {
  const data = dataOf(call)
  let loaded = 0
  for (let at = 0; at < program.length; at += 8) {
    const [code, whenTrue, whenFalse] = [program.readUInt16LE(at), program.readUInt8(at + 2), program.readUInt8(at + 3)]
    const operand = program.readUInt32LE(at + 4)
    const jump = (isTrue: boolean) => (at += 8 * (isTrue ? whenTrue : whenFalse))
    if (code === 0x20) loaded = data.readUInt32LE(operand)
    else if (code === 0x54) loaded = (loaded & operand) >>> 0
    else if (code === 0x15) jump(loaded === operand)
    else if (code === 0x35) jump(loaded >= operand)
    else if (code === 0x45) jump((loaded & operand) !== 0)
    else if (code === 0x06) return operand
    else throw new Error(`no such instruction: 0x${code.toString(16)}`)
  }
  throw new Error("the program has no end")
}
