/** Mutated requests to the agents' API as a peer without a valid token sends them, drawn from a seed (R27). */
import { SessionId } from "#schema/Ids.ts"
import { BODIES, VERBS } from "../support/agentSocket.ts"

/** A small generator with a period of 2^32, so that a failure can be run again: a whole number from 0 below its argument. */
export const randomOf = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
export type Random = ReturnType<typeof randomOf>

export const pick = <A>(random: Random, of: ReadonlyArray<A>): A => of[random(of.length)]!

const JUNK = ["", "\0", "{}", "[]", "null", "1e999", "\u{FFFF}", "__proto__", "../..", "'; --", "a".repeat(300)]

/** Flips, drops, doubles or replaces bytes of a text. */
export const mutate = (random: Random, text: string): string => {
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

/** A token of the same form as a real one. */
const otherToken = (random: Random, real: string) => {
  const at = random(real.length)
  return `${real.slice(0, at)}${real[at] === "A" ? "B" : "A"}${real.slice(at + 1)}`
}

const QUERIES = ["", "?session_id=", "?session_id=%00", "?session_id[]=x", "?session_id=a&session_id=b", "?x=%E0%A4%A"]

/** What a peer knows that has read along: the session, and a token that it may bend but not use. */
export interface Known {
  readonly session_id: SessionId
  readonly token: string
}

/** One request as bytes. A `broken` one may be no HTTP at all, after which the server closes the connection. */
export const hostileRequest = (random: Random, { session_id, token }: Known, broken: boolean): string => {
  const odd = (text: string) => (broken && random(3) === 0 ? mutate(random, text) : text)
  const verb = pick(random, VERBS)
  const body = mutate(random, JSON.stringify(BODIES[verb]))
  const rpc = `/rpc/${verb}`
  const events = `/events${pick(random, [...QUERIES, `?session_id=${session_id}`])}`
  const path = odd(
    pick(random, [rpc, rpc, rpc, rpc, rpc, rpc, rpc, events, "/agents", "/status", `${rpc}/../../shutdown`])
  )
  const presented = odd(pick(random, ["nobody", otherToken(random, token), token.slice(1), `${token}A`, "\u00e9", ""]))
  const extra = ["x-choir-job: 1.2.3", "last-event-id: 1; DROP TABLE", "expect: 100-continue", "upgrade: websocket"]
  const lines = [
    `${pick(random, ["POST", "POST", "POST", "POST", "POST", "POST", "GET", "PUT", "OPTIONS", "HEAD"])} ${path} HTTP/1.1`,
    `host: ${pick(random, ["localhost", "localhost", "localhost", "127.0.0.1", "evil.example", ""])}`,
    `authorization: ${pick(random, ["Bearer", "bearer", "Basic"])} ${presented}`,
    `x-choir-session-id: ${odd(session_id)}`,
    `x-choir-request-id: ${odd(String(random(1_000_000)))}`,
    `content-type: ${pick(random, ["application/json", "application/json", "text/plain", "application/json; charset=x"])}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    ...(random(8) === 0 ? [pick(random, extra)] : []),
    ...(broken && random(4) === 0 ? ["transfer-encoding: chunked"] : [])
  ]
  const request = odd(`${lines.join("\r\n")}\r\n\r\n${body}`)
  // A bent token may be bent back: about five times in a million requests.
  return request.replace(new RegExp(`${token}(?=[\\s\\0]*\\n)`, "gu"), "nobody")
}
