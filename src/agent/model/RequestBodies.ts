/**
 * The bytes of requests to models. Each request of a lane begins with most of the one before, so that a lane keeps its memory and only what
 * differs is written into it.
 */
import { Context, Effect } from "effect"

/** Bytes of memory that is kept between requests, of all lanes together. */
const BODIES_BYTES_MAX = 4 * 1024 * 1024
/** A body's memory beside what it needs, so that the next one, which is longer, still fits. */
const ROOM = 1.25

/** A body, and where each of its parts ends. */
interface Body {
  parts: ReadonlyArray<string>
  readonly ends: Array<number>
  bytes: Buffer
}

const bytesOf = (parts: ReadonlyArray<string>): number => parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0)

/** Writes parts where a body differs from them. */
const write = (body: Body, parts: ReadonlyArray<string>): Uint8Array => {
  const { ends, parts: before } = body
  let same = 0
  while (same < before.length && before[same] === parts[same]) same++
  let end = ends[same - 1] ?? 0
  const fresh = parts.slice(same)
  const needed = end + bytesOf(fresh)
  if (needed > body.bytes.length) {
    const larger = Buffer.allocUnsafeSlow(Math.ceil(needed * ROOM))
    body.bytes.copy(larger, 0, 0, end)
    body.bytes = larger
  }
  ends.length = same
  for (const part of fresh) ends.push((end += body.bytes.write(part, end)))
  body.parts = parts
  return body.bytes.subarray(0, end)
}

/** Writes the bodies of requests. */
export class RequestBodies extends Context.Service<
  RequestBodies,
  {
    /**
     * Sends parts as one body by `send`, and keeps its memory for the next body under the same key. What is still being sent is never written to: a
     * body is taken while it is used, and one whose request did not come to its end is not kept.
     */
    use<A, E, R>(
      key: string | undefined,
      parts: ReadonlyArray<string>,
      send: (body: Uint8Array) => Effect.Effect<A, E, R>
    ): Effect.Effect<A, E, R>
  }
>()("choir/agent/RequestBodies") {}

export const makeRequestBodies = (): RequestBodies["Service"] => {
  const kept = new Map<string, Body>()
  const keep = (key: string, body: Body) => {
    kept.delete(key)
    kept.set(key, body)
    let bytes = [...kept.values()].reduce((sum, each) => sum + each.bytes.length, 0)
    for (const [oldest, each] of kept) {
      if (bytes <= BODIES_BYTES_MAX) break
      kept.delete(oldest)
      bytes -= each.bytes.length
    }
  }
  return RequestBodies.of({
    use: (key, parts, send) =>
      Effect.suspend(() => {
        const body = (key === undefined ? undefined : kept.get(key)) ?? { parts: [], ends: [], bytes: Buffer.alloc(0) }
        if (key === undefined) return send(write(body, parts))
        kept.delete(key)
        return Effect.tap(send(write(body, parts)), () => Effect.sync(() => keep(key, body)))
      })
  })
}
