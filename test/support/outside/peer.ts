/**
 * A machine of the network of outsideNetwork.ts, as a process in a network namespace: a name server, the fronts of services, and a trap at every
 * other address and port that it is reached by. Its one argument is a {@link PeerPlan}; asked by a message, it answers with {@link PeerSeen}.
 */
import { createSocket } from "node:dgram"
import { readFileSync } from "node:fs"
import { connect, createServer, isIPv4, isIPv6, type Socket } from "node:net"
import { createSecureContext, TLSSocket } from "node:tls"

/** A port of an address that leads to a socket of the test's own; with a certificate it ends TLS. */
export interface Front {
  readonly addresses: ReadonlyArray<string>
  readonly port: number
  readonly socket: string
  readonly tls: boolean
}

export interface PeerPlan {
  /** Answers to the questions about a name, one after the other; the last one stays. Without any there is no name server. */
  readonly names: Readonly<Record<string, ReadonlyArray<ReadonlyArray<string>>>>
  readonly fronts: ReadonlyArray<Front>
  /** Files of the certificate of the fronts. */
  readonly cert: string
  readonly key: string
  /** Ports that are a trap beside those of the fronts. */
  readonly trap_ports: ReadonlyArray<number>
}

export interface PeerSeen {
  /** `address port` of each connection that no front is for. */
  readonly trapped: ReadonlyArray<string>
  /** The names that were asked for, each once. */
  readonly asked: ReadonlyArray<string>
}

const TYPE_A = 1
const TYPE_AAAA = 28
const NO_SUCH_NAME = 3
const TTL_SECONDS = 0
const DNS_PORT = 53

const plan = JSON.parse(process.argv[2] ?? "{}") as PeerPlan
const trapped: Array<string> = []
const asked = new Set<string>()

const bytesOf = (address: string): Buffer => {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number))
  const dotted = /(.*:)(\d+\.\d+\.\d+\.\d+)$/u.exec(address)
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)))
  if (dotted !== null) {
    const [a = 0, b = 0, c = 0, d = 0] = bytesOf(dotted[2] ?? "")
    return bytesOf(`${dotted[1]}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`)
  }
  const [head = "", tail] = address.split("::")
  const [front, back] = [groups(head), groups(tail ?? "")]
  const all = tail === undefined ? front : [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

const recordOf = (address: string): Buffer => {
  const data = bytesOf(address)
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(data.length === 4 ? TYPE_A : TYPE_AAAA, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(TTL_SECONDS, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

const turns = new Map<string, number>()

/** The addresses of a question's type; `undefined` where there is no such name. */
const answersTo = (name: string, type: number): ReadonlyArray<string> | undefined => {
  const answers = Object.hasOwn(plan.names, name) ? plan.names[name] : undefined
  if (answers === undefined) return undefined
  const key = `${name} ${type}`
  const turn = turns.get(key) ?? 0
  turns.set(key, turn + 1)
  const wanted = type === TYPE_A ? isIPv4 : type === TYPE_AAAA ? isIPv6 : () => false
  return (answers[Math.min(turn, answers.length - 1)] ?? []).filter((address) => wanted(address))
}

const serveNames = () => {
  const server = createSocket({ type: "udp6" })
  server.on("message", (question, from) => {
    const labels: Array<string> = []
    let at = 12
    for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
      labels.push(question.toString("latin1", at + 1, at + 1 + length))
      at += length + 1
    }
    const name = labels.join(".").toLowerCase()
    asked.add(name)
    const found = answersTo(name, question.readUInt16BE(at + 1))
    const head = Buffer.alloc(12)
    question.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8180 | (found === undefined ? NO_SUCH_NAME : 0), 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(found?.length ?? 0, 6)
    server.send(
      Buffer.concat([head, question.subarray(12, at + 5), ...(found ?? []).map(recordOf)]),
      from.port,
      from.address
    )
  })
  return new Promise<void>((resolve) => server.bind(DNS_PORT, "::", resolve))
}

const joined = (one: Socket, other: Socket) => {
  for (const [from, to] of [
    [one, other],
    [other, one]
  ] as const)
    from.on("error", () => to.destroy()).once("close", () => to.destroy())
  one.pipe(other).pipe(one)
}

const serve = (port: number) => {
  const secureContext = createSecureContext({ cert: readFileSync(plan.cert), key: readFileSync(plan.key) })
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy())
    const at = (socket.localAddress ?? "").replace(/^::ffff:/u, "")
    const front = plan.fronts.find((each) => each.port === port && each.addresses.includes(at))
    if (front === undefined) {
      trapped.push(`${at} ${port}`)
      socket.end("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nTRAPPED")
    } else {
      const options = { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] }
      joined(front.tls ? new TLSSocket(socket, options) : socket, connect(front.socket))
    }
  })
  return new Promise<void>((resolve) => server.listen(port, "::", resolve))
}

const ports = new Set([...plan.fronts.map(({ port }) => port), ...plan.trap_ports])
process.on("message", () => process.send?.({ trapped, asked: [...asked] } satisfies PeerSeen))
// It ends with the test that started it.
process.once("disconnect", () => process.exit(0))
await Promise.all([...[...ports].map(serve), ...(Object.keys(plan.names).length === 0 ? [] : [serveNames()])])
process.send?.("ready")
