import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { connect, type Socket } from "node:net"
import { BODIES, openSession, VERBS } from "../../support/agentSocket.ts"
import { SESSION } from "../../support/control.ts"
import { ask } from "../../support/unixHttp.ts"

const REQUESTS = 20_000
const KNOWN_REQUESTS = 1000
const SEED = 7
const BATCH = 100
const CONNECTIONS = 5

/** A small generator with a period of 2^32, so that a failure can be run again. */
const randomOf = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
type Random = ReturnType<typeof randomOf>

const pick = <A>(random: Random, of: ReadonlyArray<A>): A => of[random(of.length)]!

const JUNK = ["", "\0", "{}", "[]", "null", "1e999", "\u{FFFF}", "__proto__", "../..", "'; --", "a".repeat(300)]

/** Flips, drops, doubles or replaces bytes of a text. */
const mutate = (random: Random, text: string): string => {
  let mutated = text
  for (let count = random(4); count > 0; count -= 1) {
    const at = random(mutated.length + 1)
    const end = at + random(8)
    const kind = random(4)
    const middle = kind === 0 ? "" : kind === 1 ? mutated.slice(at, end).repeat(2) : pick(random, JUNK)
    mutated = mutated.slice(0, at) + (kind === 3 ? String.fromCharCode(random(256)) : middle) + mutated.slice(end)
  }
  return mutated
}

/** A request as bytes. A `broken` one may be no HTTP at all, after which the server closes the connection. */
const hostile = (random: Random, broken: boolean): string => {
  const odd = (text: string) => (broken && random(3) === 0 ? mutate(random, text) : text)
  const verb = pick(random, VERBS)
  const body = mutate(random, JSON.stringify(BODIES[verb]))
  const rpc = `/rpc/${verb}`
  const path = odd(pick(random, [rpc, rpc, rpc, rpc, "/events", "/agents"]))
  const token = odd(pick(random, ["nobody", "LEASE", "leas", "stranger", "boot\u00e9", ""]))
  const lines = [
    `${pick(random, ["POST", "POST", "POST", "POST", "GET", "PUT", "OPTIONS"])} ${path} HTTP/1.1`,
    "host: x",
    `authorization: ${pick(random, ["Bearer", "bearer", "Basic"])} ${token}`,
    `x-choir-session-id: ${odd(SESSION)}`,
    `x-choir-request-id: ${odd(String(random(1_000_000)))}`,
    `content-length: ${Buffer.byteLength(body)}`,
    ...(broken && random(4) === 0 ? ["transfer-encoding: chunked"] : [])
  ]
  return odd(`${lines.join("\r\n")}\r\n\r\n${body}`)
}

/** Sends on one connection until the server closes it, and says how many answers had which status. */
const batch = (path: string, requests: ReadonlyArray<string>) =>
  Effect.callback<string>((resume) => {
    let seen = ""
    const socket: Socket = connect(path)
    socket.on("data", (part) => (seen += part.toString()))
    socket.on("error", () => {})
    socket.once("close", () => resume(Effect.succeed(seen)))
    socket.end(requests.join(""))
    return Effect.sync(() => socket.destroy())
  })

describe("a session's socket under 20,000 mutated requests (R27)", () => {
  it.effect(
    `changes nothing without a token, fails on none and goes on serving (seed ${SEED})`,
    () =>
      Effect.gen(function* () {
        const { call, socket, world } = yield* openSession
        const random = randomOf(SEED)
        const statuses = new Map<string, number>()
        for (let sent = 0; sent < REQUESTS; sent += BATCH) {
          // Broken bytes come last on a connection, so that all before them are looked at.
          const parts = Array.from({ length: CONNECTIONS }, () =>
            Array.from({ length: BATCH / CONNECTIONS }, (_, place) =>
              hostile(random, place === BATCH / CONNECTIONS - 1)
            )
          )
          const answers = yield* Effect.forEach(parts, (part) => batch(socket.path, part), { concurrency: CONNECTIONS })
          for (const [, status] of answers.join("").matchAll(/HTTP\/1\.1 (\d{3}) /gu))
            statuses.set(status!, (statuses.get(status!) ?? 0) + 1)
          world.audit.length = 0
          yield* TestClock.adjust("1 second")
        }
        assert.deepStrictEqual(world.effects, [])
        assert.isUndefined(statuses.get("500"))
        assert.isUndefined(statuses.get("200"))
        assert.isAbove(statuses.get("401") ?? 0, REQUESTS / 4)
        const alive = yield* call("HEARTBEAT")
        assert.strictEqual(alive.status, 200)
      }),
    60_000
  )

  it.effect(
    "answers every mutated body of a caller that may ask with 200, 400, 404 or 409, and never with 500",
    () =>
      Effect.gen(function* () {
        const { path } = yield* openSession
        const random = randomOf(SEED)
        const odd: Array<string> = []
        for (let sent = 0; sent < KNOWN_REQUESTS; sent += 1) {
          if (sent % BATCH === 0) yield* TestClock.adjust("1 second")
          const verb = pick(random, VERBS)
          const body = mutate(random, JSON.stringify(BODIES[verb]))
          const headers = {
            authorization: "Bearer lease",
            "x-choir-session-id": SESSION,
            "x-choir-request-id": String(sent)
          }
          const { status } = yield* ask(path, { path: `/rpc/${verb}`, headers, body })
          if (![200, 400, 401, 404, 409].includes(status)) odd.push(`${status} ${verb} ${body}`)
        }
        assert.deepStrictEqual(odd, [])
      }),
    60_000
  )
})
