/**
 * The few steps that the program `choir-agent.apart` is made of, as machine code of either architecture: system calls with their
 * arguments, and jumps by what they answered. A tool for that one program, not an assembler.
 */
import type { Architecture } from "./bpf.ts"

/** A constant of at most 32 bits; the answer that was kept; or the address of the pair of values that was put on the stack. */
export type Argument = number | "kept" | "pair"

export type Step =
  /** Makes a system call, whose answer the next step can look at. */
  | { readonly do: "call"; readonly number: number; readonly arguments: ReadonlyArray<Argument> }
  /** Jumps to a label unless the call answered 0, or a descriptor or another number that is not negative. */
  | { readonly do: "unlessZero" | "ifNegative"; readonly to: string }
  /** Keeps the answer for later calls. */
  | { readonly do: "keep" }
  /** Puts a constant of 64 bits on the stack, and the answer of 32 bits behind it. */
  | { readonly do: "putPair"; readonly constant: number }
  /** Jumps to a label unless the first character of the program's first argument has this bit (0 is the lowest). */
  | { readonly do: "unlessBit"; readonly bit: number; readonly to: string }
  /** Begins a program that looks at its arguments: jumps to a label where there are fewer than two. */
  | { readonly do: "begin"; readonly withoutCommand: string }
  /** Becomes the program that the second argument names, with the arguments from there on and the same environment. */
  | { readonly do: "become"; readonly number: number }
  /** Ends the process with the answer, or with 0 where that is negative. */
  | { readonly do: "exitWithAnswer"; readonly number: number }
  | { readonly do: "label"; readonly name: string }

/** One step as bytes. @param distance how far a label is from the end of this jump. */
type Encode = (step: Step, distance: (label: string, bytes: number) => number) => Buffer

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex")

const little = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}

/** `mov REGISTER, constant`, `mov REGISTER, ebx` and `lea REGISTER, [rsp-16]` for the registers of a call's arguments in turn. */
const X64_ARGUMENTS = [
  { constant: "bf", kept: "89df", pair: "488d7c24f0" }, // edi
  { constant: "be", kept: "89de", pair: "488d7424f0" }, // esi
  { constant: "ba", kept: "89da", pair: "488d5424f0" }, // edx
  { constant: "41ba", kept: "4189da", pair: "4c8d5424f0" }, // r10d
  { constant: "41b8", kept: "4189d8", pair: "4c8d4424f0" } // r8d
] as const

const x64Call = (number: number, values: ReadonlyArray<Argument>): Buffer =>
  Buffer.concat([
    ...X64_ARGUMENTS.slice(0, values.length).flatMap((register, index) => {
      const value = values[index] ?? 0
      return typeof value === "number" ? [hex(register.constant), little(value)] : [hex(register[value])]
    }),
    hex("b8"),
    little(number),
    hex("0f05") // mov eax, number; syscall
  ])

/** Answers are in rax, what is kept in ebx, the first character of the first argument in ebp. */
const x64: Encode = (step, distance) => {
  const jump = (code: string, label: string) => {
    const bytes = hex(code)
    return Buffer.concat([bytes, little(distance(label, bytes.length + 4))])
  }
  switch (step.do) {
    case "begin":
      return Buffer.concat([
        hex("48833c2403"), // cmp qword [rsp], 3
        jump("0f8c", step.withoutCommand), // jl
        hex("488b442410 0fb628") // mov rax, [rsp+16]; movzx ebp, byte [rax]
      ])
    case "call":
      return x64Call(step.number, step.arguments)
    case "unlessZero":
      return jump("85c0 0f85", step.to) // test eax, eax; jnz
    case "ifNegative":
      return jump("85c0 0f88", step.to) // test eax, eax; js
    case "keep":
      return hex("89c3") // mov ebx, eax
    case "putPair":
      // mov [rsp-8], eax; mov qword [rsp-16], constant
      return Buffer.concat([hex("894424f8 48c74424f0"), little(step.constant)])
    case "unlessBit": {
      const test = Buffer.concat([hex("f7c5"), little(1 << step.bit), hex("0f84")]) // test ebp, mask; jz
      return jump(test.toString("hex"), step.to)
    }
    case "become":
      return Buffer.concat([
        hex("488d742418 488b3e"), // lea rsi, [rsp+24]; mov rdi, [rsi]
        hex("488b0c24 488d54cc10"), // mov rcx, [rsp]; lea rdx, [rsp+rcx*8+16]
        x64Call(step.number, [])
      ])
    case "exitWithAnswer":
      // xor edi, edi; test eax, eax; cmovns edi, eax
      return Buffer.concat([hex("31ff 85c0 0f49f8"), x64Call(step.number, [])])
    case "label":
      return Buffer.alloc(0)
  }
}

const words = (...values: ReadonlyArray<number>): Buffer => Buffer.concat(values.map(little))

/** movz xR, #low; movk xR, #high, lsl #16, the second where it is needed. */
const arm64Constant = (register: number, value: number): Buffer => {
  const [low, high] = [value & 0xffff, (value >>> 16) & 0xffff]
  const first = 0xd2800000 | (low << 5) | register
  return high === 0 ? words(first) : words(first, 0xf2a00000 | (high << 5) | register)
}

const SVC = 0xd4000001

const arm64Call = (number: number, values: ReadonlyArray<Argument>): Buffer =>
  Buffer.concat([
    ...values.map((value, register) => {
      if (typeof value === "number") return arm64Constant(register, value)
      // mov xR, x19; sub xR, sp, #16
      return words((value === "kept" ? 0xaa1303e0 : 0xd10043e0) | register)
    }),
    arm64Constant(8, number),
    words(SVC)
  ])

/** Answers are in x0, what is kept in x19, the first character of the first argument in w20. */
const arm64: Encode = (step, distance) => {
  /** A jump counts instructions from its own place. */
  const jump = (code: number, at: number, bits: number, label: string) =>
    words(code | (((distance(label, 0) / 4) & ((1 << bits) - 1)) << at))
  switch (step.do) {
    case "begin": {
      // ldr x9, [sp]; cmp x9, #3
      const compare = words(0xf94003e9, 0xf1000d3f)
      const far = distance(step.withoutCommand, compare.length) / 4
      return Buffer.concat([
        compare,
        words(0x5400000b | ((far & 0x7ffff) << 5)), // b.lt
        words(0xf9400be9, 0x39400134) // ldr x9, [sp, #16]; ldrb w20, [x9]
      ])
    }
    case "call":
      return arm64Call(step.number, step.arguments)
    case "unlessZero":
      return jump(0xb5000000, 5, 19, step.to) // cbnz x0
    case "ifNegative":
      return jump(0xb7f80000, 5, 14, step.to) // tbnz x0, #63
    case "keep":
      return words(0xaa0003f3) // mov x19, x0
    case "putPair":
      // stur w0, [sp, #-8]; mov x9, constant; stur x9, [sp, #-16]
      return Buffer.concat([words(0xb81f83e0), arm64Constant(9, step.constant), words(0xf81f03e9)])
    case "unlessBit":
      return jump(0x36000014 | (step.bit << 19), 5, 14, step.to) // tbz w20, #bit
    case "become":
      return Buffer.concat([
        words(0x910063e1, 0xf9400020), // add x1, sp, #24; ldr x0, [x1]
        words(0xf94003e9, 0x8b296fe2, 0x91004042), // ldr x9, [sp]; add x2, sp, x9, lsl #3; add x2, x2, #16
        arm64Call(step.number, [])
      ])
    case "exitWithAnswer":
      // cmp x0, #0; csel x0, x0, xzr, ge
      return Buffer.concat([words(0xf100001f, 0x9a9fa000), arm64Call(step.number, [])])
    case "label":
      return Buffer.alloc(0)
  }
}

const ENCODE: Readonly<Record<Architecture, Encode>> = { x64, arm64 }

/** The machine code of these steps, in which a step's length does not depend on how far its label is. */
export const machineCode = (architecture: Architecture, steps: ReadonlyArray<Step>): Buffer => {
  const encode = ENCODE[architecture]
  const places: Array<number> = []
  const labels = new Map<string, number>()
  let length = 0
  for (const step of steps) {
    places.push(length)
    if (step.do === "label") labels.set(step.name, length)
    length += encode(step, () => 0).length
  }
  return Buffer.concat(
    steps.map((step, index) =>
      encode(step, (label, bytes) => {
        const place = labels.get(label)
        if (place === undefined) throw new Error(`no step has the label ${label}`)
        return place - (places[index] ?? 0) - bytes
      })
    )
  )
}
