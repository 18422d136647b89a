/**
 * The hostile peer, in a process of its own, so that what choird needs is seen without it: gets its work as JSON in its first argument,
 * tells after each thousand requests how many it sent, and at the end what it was answered.
 */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { hostileRequest, randomOf, type Known } from "./requests.ts"

export interface Work {
  readonly path: string
  readonly port: number
  readonly ca: string
  readonly known: Known
  readonly requests: number
  readonly seed: number
}

export type Told = { readonly sent: number } | { readonly statuses: Readonly<Record<string, number>> }

/** Below R47's 8, since a connection that is being closed counts as well. */
const CONNECTIONS = 5
const BATCH = 100
const BROKEN_ONE_IN = 10
/** A handshake costs several times what a request does, so that one batch of so many goes over TLS. */
const BATCHES_A_HANDSHAKE = 4
const TELL_EVERY = 1000

/** Sends on a connection of its own, since the server closes one whose body it did not want, and gives the answers. */
const send = (dial: () => Socket, request: string, broken: boolean) =>
  new Promise<string>((resolve) => {
    let seen = ""
    const socket = dial()
    socket.on("data", (part) => (seen += part.toString()))
    socket.on("error", () => {})
    socket.once("close", () => resolve(seen))
    // The server gives up on a peer that says it is done, which is the way to get rid of one that may still wait for more.
    if (broken) socket.end(request)
    else socket.write(request)
  })

const { ca, known, path, port, requests, seed } = JSON.parse(process.argv[2] ?? "") as Work
const dialling = {
  uds: (): Socket => connect(path),
  https: (): Socket => connectTls({ host: "127.0.0.1", port, ca, servername: "localhost" })
}
const tell = (what: Told) => process.stdout.write(`${JSON.stringify(what)}\n`)
const random = randomOf(seed)
const statuses: Record<string, number> = {}
for (let sent = 0; sent < requests; sent += BATCH) {
  const dial = (sent / BATCH) % BATCHES_A_HANDSHAKE === 0 ? dialling.https : dialling.uds
  const batch = Array.from({ length: BATCH }, () => {
    const broken = random(BROKEN_ONE_IN) === 0
    return { broken, text: hostileRequest(random, known, broken) }
  })
  const worker = async () => {
    for (let next = batch.shift(); next !== undefined; next = batch.shift()) {
      const answers = await send(dial, next.text, next.broken)
      for (const [, status = ""] of answers.matchAll(/HTTP\/1\.1 (\d{3}) /gu))
        statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  if ((sent + BATCH) % TELL_EVERY === 0) tell({ sent: sent + BATCH })
}
tell({ statuses })
