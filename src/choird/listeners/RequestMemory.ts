/** The request ids of one session (R28) with the digests of their requests and, for verbs with an effect, the replies. */
import { Deferred, Effect } from "effect"
import type { HttpServerResponse } from "effect/http"

/** Request ids that are remembered per session (R28). */
export const REQUEST_IDS_MAX = 10_000
/** Time that a request id is remembered (R28). */
export const REQUEST_ID_MS_MAX = 600_000
/** Remembered replies of one session; the oldest go first. */
export const REPLIES_BYTES_MAX = 4 * 1024 * 1024

/** The outcome of an execution that others wait for; `undefined` when it failed and has to run again. */
type Outcome = HttpServerResponse.HttpServerResponse | undefined
type Running = Deferred.Deferred<Outcome>

interface Entry {
  readonly digest: string
  readonly at_ms: number
  readonly running?: Running
  readonly reply?: HttpServerResponse.HttpServerResponse
}

type Found =
  | { readonly type: "run" }
  /** Run it and pass its outcome to `finish`. */
  | { readonly type: "lead"; readonly running: Running }
  | { readonly type: "wait"; readonly running: Running }
  | { readonly type: "reused" }
  | { readonly type: "reply"; readonly reply: HttpServerResponse.HttpServerResponse }

const bytesOf = (reply: HttpServerResponse.HttpServerResponse | undefined) =>
  reply?.body._tag === "Uint8Array" ? reply.body.contentLength : 0

/** Keeps at most REQUEST_IDS_MAX ids for REQUEST_ID_MS_MAX and REPLIES_BYTES_MAX of replies; the oldest go first. */
export const makeRequestMemory = () => {
  // In the order of their first request, which is the order in which they are forgotten.
  const entries = new Map<string, Entry>()
  let bytes = 0

  const forget = (id: string) => {
    bytes -= bytesOf(entries.get(id)?.reply)
    entries.delete(id)
  }

  const trim = (now_ms: number) => {
    for (const [id, { at_ms }] of entries) {
      const crowded = entries.size > REQUEST_IDS_MAX || bytes > REPLIES_BYTES_MAX
      if (!crowded && now_ms - at_ms < REQUEST_ID_MS_MAX) return
      forget(id)
    }
  }

  /** Decides what to do with a request; `remembered` verbs run once, the others each time. */
  const begin = (id: string, digest: string, remembered: boolean, now_ms: number): Found => {
    trim(now_ms)
    const entry = entries.get(id)
    if (entry !== undefined && entry.digest !== digest) return { type: "reused" }
    if (entry?.reply !== undefined) return { type: "reply", reply: entry.reply }
    if (entry?.running !== undefined) return { type: "wait", running: entry.running }
    const at_ms = entry?.at_ms ?? now_ms
    if (!remembered) {
      entries.set(id, { digest, at_ms })
      return { type: "run" }
    }
    const running: Running = Deferred.makeUnsafe()
    entries.set(id, { digest, at_ms, running })
    return { type: "lead", running }
  }

  /** Hands the outcome of a remembered request to those who wait, and keeps it when it is a reply. */
  const finish = (id: string, running: Running, outcome: Outcome, now_ms: number) => {
    Deferred.doneUnsafe(running, Effect.succeed(outcome))
    const entry = entries.get(id)
    // The id may have been forgotten meanwhile, and even be in use again.
    if (entry?.running !== running) return
    const { at_ms, digest } = entry
    entries.set(id, outcome === undefined ? { digest, at_ms } : { digest, at_ms, reply: outcome })
    bytes += bytesOf(outcome)
    trim(now_ms)
  }

  return { begin, finish, size: () => entries.size }
}
export type RequestMemory = ReturnType<typeof makeRequestMemory>
