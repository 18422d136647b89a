/** A name server on loopback whose answers a test writes, over UDP as resolvers ask. */
import { createSocket } from "node:dgram"
import { isIPv6 } from "node:net"
import { Effect } from "effect"

/** An answer to one question about a name: its addresses, or another name with addresses. Of these each question gets those of its kind. */
export interface NameAnswer {
  readonly addresses: ReadonlyArray<string>
  readonly alias?: string
}

const TYPES = { A: 1, CNAME: 5, AAAA: 28 } as const
const HEADER_BYTES = 12
const RESPONSE = 0x8180
const NO_SUCH_NAME = 0x8183

/** The name of the first question, and where its type begins. */
const nameIn = (query: Buffer): readonly [name: string, end: number] => {
  const labels: Array<string> = []
  let at = HEADER_BYTES
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length))
    at += 1 + length
  }
  return [labels.join(".").toLowerCase(), at + 1]
}

const nameBytes = (name: string) =>
  Buffer.concat([
    ...name.split(".").map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label, "latin1")])),
    Buffer.of(0)
  ])

const groups = (part: string) => (part === "" ? [] : part.split(":"))

const addressBytes = (address: string): Buffer => {
  if (!isIPv6(address)) return Buffer.from(address.split(".").map(Number))
  const [before = "", after] = address.split("::")
  const [head, tail] = [groups(before), groups(after ?? "")]
  const zeros = after === undefined ? [] : Array.from({ length: 8 - head.length - tail.length }, () => "0")
  const bytes = Buffer.alloc(16)
  for (const [index, group] of [...head, ...zeros, ...tail].entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2)
  return bytes
}

/** A record that nothing may keep. */
const record = (name: Buffer, type: number, data: Buffer) => {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(1, 2)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([name, fixed, data])
}

const POINTER = Buffer.of(0xc0, HEADER_BYTES)

const answerTo = (query: Buffer, type: number, end: number, answer: NameAnswer | undefined): Buffer => {
  const { addresses = [], alias } = answer ?? {}
  const named = alias === undefined ? POINTER : nameBytes(alias)
  const records = [
    ...(alias === undefined ? [] : [record(POINTER, TYPES.CNAME, nameBytes(alias))]),
    ...addresses
      .filter((address) => type === (isIPv6(address) ? TYPES.AAAA : TYPES.A))
      .map((address) => record(named, type, addressBytes(address)))
  ]
  const head = Buffer.alloc(HEADER_BYTES)
  query.copy(head, 0, 0, 2)
  head.writeUInt16BE(answer === undefined ? NO_SUCH_NAME : RESPONSE, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  return Buffer.concat([head, query.subarray(HEADER_BYTES, end + 4), ...records])
}

/**
 * Listens until the scope closes.
 *
 * @param names for each name its answers, one after the other for each kind of question; the last one stays. A name with none gets no word.
 */
export const nameServer = Effect.fn("nameServer")(function* (
  names: Readonly<Record<string, ReadonlyArray<NameAnswer>>>
) {
  const asked = new Map<string, number>()
  const socket = createSocket("udp4")
  socket.on("message", (query, { address, port }) => {
    const [name, end] = nameIn(query)
    const type = query.readUInt16BE(end)
    const key = `${name} ${type}`
    const time = asked.get(key) ?? 0
    asked.set(key, time + 1)
    const answers = Object.hasOwn(names, name) ? names[name] : undefined
    if (answers?.length === 0) return
    socket.send(answerTo(query, type, end, answers?.[Math.min(time, answers.length - 1)]), port, address)
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void socket.bind(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => void socket.close())
  )
  return {
    server: `127.0.0.1:${socket.address().port}`,
    /** How often its IPv4 addresses were asked for. */
    asked: (name: string) => asked.get(`${name} ${TYPES.A}`) ?? 0
  }
})
