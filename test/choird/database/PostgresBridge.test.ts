import { assert, describe, it } from "@effect/vitest"
import { PostgresBridge } from "#src/choird/database/PostgresBridge.ts"
import { EMBEDDED_CONNECTIONS_MAX } from "#src/choird/database/Database.ts"

const framed = (type: string, body: string) => {
  const bytes = Buffer.alloc(5 + body.length)
  bytes.write(`${type}\0\0\0\0${body}`, "latin1")
  bytes.writeUInt32BE(4 + body.length, 1)
  return bytes
}
const query = (text: string) => framed("Q", `${text}\0`)
const STARTUP = Buffer.from("\0\0\0\x08\0\x03\0\0", "latin1")
const IDLE = framed("Z", "I")
const IN_TRANSACTION = framed("Z", "T")

/** A backend with as much sense as the bridge relies on, and a diary. */
const engine = () => {
  const diary: Array<string> = []
  let open = false
  const backend = async (cycle: Uint8Array, onData: (bytes: Uint8Array) => void) => {
    const text = cycle[0] === 0x51 ? Buffer.from(cycle).toString("latin1", 5, cycle.length - 1) : "startup"
    diary.push(text)
    if (text === "BEGIN") open = true
    if (text === "ROLLBACK" || text === "COMMIT") open = false
    if (text === "half") return onData(framed("C", "SELECT"))
    for (const byte of open ? IN_TRANSACTION : IDLE) onData(Uint8Array.of(byte))
  }
  return { backend, diary }
}

const connected = (bridge: PostgresBridge) => {
  const sent: Array<string> = []
  let closed = false
  const connection = bridge.connect({
    send: (bytes) => sent.push(Buffer.from(bytes).toString("latin1")),
    hangUp: () => {
      closed = true
    }
  })
  connection.receive(STARTUP)
  return { ...connection, sent, isClosed: () => closed }
}

/** Lets every turn that can be taken be taken. */
const settle = () => new Promise((resolve) => setImmediate(resolve))
const notBroken = () => assert.fail("the backend is said to have broken")

describe("PostgresBridge", () => {
  it("leaves the backend to a transaction until it ends, then goes on in the order of asking", async () => {
    const { backend, diary } = engine()
    const bridge = new PostgresBridge(backend, 1000, notBroken)
    const [a, b, c] = [connected(bridge), connected(bridge), connected(bridge)]
    await settle()
    a.receive(query("BEGIN"))
    b.receive(query("b1"))
    c.receive(query("c1"))
    await settle()
    b.receive(query("b2"))
    a.receive(query("a1"))
    a.receive(query("COMMIT"))
    await settle()
    assert.deepStrictEqual(diary.slice(3), ["BEGIN", "a1", "COMMIT", "b1", "c1", "b2"])
  })

  it("rolls back what a closed connection left open", async () => {
    const { backend, diary } = engine()
    const bridge = new PostgresBridge(backend, 1000, notBroken)
    const [a, b] = [connected(bridge), connected(bridge)]
    a.receive(query("BEGIN"))
    b.receive(query("b1"))
    await settle()
    a.close()
    await settle()
    assert.deepStrictEqual(diary.slice(-3), ["BEGIN", "ROLLBACK", "b1"])
  })

  it("forgets what a closed connection still waited for", async () => {
    const { backend, diary } = engine()
    const bridge = new PostgresBridge(backend, 1000, notBroken)
    const [a, b] = [connected(bridge), connected(bridge)]
    a.receive(query("BEGIN"))
    b.receive(query("b1"))
    await settle()
    b.close()
    a.receive(query("COMMIT"))
    await settle()
    assert.strictEqual(diary.at(-1), "COMMIT")
  })

  it("says that the backend has broken when it gives half an answer", async () => {
    const { backend } = engine()
    let broken = 0
    const bridge = new PostgresBridge(backend, 1000, () => {
      broken += 1
    })
    const a = connected(bridge)
    a.receive(query("half"))
    a.receive(query("after"))
    await settle()
    assert.strictEqual(broken, 1)
    assert.lengthOf(a.sent, 1)
  })

  it("refuses one connection too many, and takes another when one has closed", async () => {
    const { backend } = engine()
    const bridge = new PostgresBridge(backend, 1000, notBroken)
    const all = Array.from({ length: 2 * EMBEDDED_CONNECTIONS_MAX }, () => connected(bridge))
    const refused = connected(bridge)
    assert.isTrue(refused.isClosed())
    assert.include(refused.sent[0], "53300")
    all[0]?.close()
    assert.isFalse(connected(bridge).isClosed())
  })
})
