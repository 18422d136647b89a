/**
 * The choice of requests that choird works on at once. A busy session, which sends more than an agent at work does, waits in a queue with others like it; the
 * requests of all other sessions begin at once. Large bodies wait before they are read, so that what they take in memory has a bound over
 * all sessions.
 */
import { Deferred, Effect } from "effect"
import { logDeath } from "#src/shared/background.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

/** Requests that hold a slot at once, over all busy sessions, while no other session asks for anything. */
export const SLOTS_MAX = 4
/** The same while other sessions ask. */
const SLOTS_BESIDE_MAX = 1
/** A slot rests this many times as long as it was held, for as long as other sessions ask: busy ones get a quarter of choird's thread. */
export const REST_PER_SLOT = 3
/** How long after a request of a session that is not busy its kind still counts as asking. */
export const RESTS_FOR_MS = 1000
/** How long a request holds its slot: one that waits for something else, such as the rest of its body or a tool, lets others begin. */
export const SLOT_MS_MAX = 250
/** Requests of one session that wait; more are refused. An agent has a third of that on its connections, but a peer may send many on one. */
export const WAITING_MAX = 16
/** How long a request waits for a slot at most: an agent whose heartbeats wait for long is taken for dead. */
export const WAIT_MS_MAX = 2000
/** The weight of requests per second, over the last seconds, from which on a session is busy. An agent at work with several jobs sends some ten. */
const QUEUED_FROM_PER_SECOND = 20
/** Bytes of a body that weigh as much as a request does without one. */
const BYTES_PER_REQUEST = 32 * 1024
/** After this time half of what a session has used is forgotten. */
const HALF_LIFE_MS = 5000
/** Bytes of large bodies that choird reads and works on at once, over all sessions. */
export const BODIES_BYTES_MAX = 8 * BODY_BYTES_MAX
/** Bytes of large bodies of one session at once: one of the largest. */
export const SESSION_BODIES_BYTES_MAX = BODY_BYTES_MAX
/** How long a large body counts at most: a request that is at work for longer, such as a slow tool's, must not keep heartbeats waiting. */
export const BODY_MS_MAX = 2000
/** A body up to this size waits for no other. */
export const SMALL_BODY_BYTES_MAX = 64 * 1024

/** One session, as the queue knows it. */
export interface RequestUse {
  /** The weight of its requests, of which half is forgotten every HALF_LIFE_MS. The time they took would grow with what others do. */
  used: number
  at_ms: number
  /** Its requests that hold a slot. */
  slots: number
  /** The large bodies that are worked on. */
  bytes: number
  /** Its requests that wait. */
  waiting: number
}

export const makeRequestUse = (now_ms: number): RequestUse => ({
  used: 0,
  at_ms: now_ms,
  slots: 0,
  bytes: 0,
  waiting: 0
})

interface Request {
  readonly use: RequestUse
  /** Of a large body; 0 for any other. */
  readonly bytes: number
  readonly begin: () => void
  readonly came_ms: number
  /** When it began. */
  began_ms: number | undefined
}

/** The longest rest. */
export const REST_MS_MAX = 500
const restAfter = (held_ms: number) => Math.min(REST_PER_SLOT * held_ms, REST_MS_MAX)

const forget = (use: RequestUse, now_ms: number) => {
  use.used *= 0.5 ** (Math.max(0, now_ms - use.at_ms) / HALF_LIFE_MS)
  use.at_ms = now_ms
}

/** Whether it sends more than an agent at work does. */
const isBusy = ({ used }: RequestUse) => (used * Math.LN2 * 1000) / HALF_LIFE_MS >= QUEUED_FROM_PER_SECOND

/** The session whose request goes first: it holds fewer slots, has less in memory, or has used less. */
const compare = (one: RequestUse, other: RequestUse) =>
  one.slots - other.slots || one.bytes - other.bytes || one.used - other.used

/** The large bodies that are read or worked on. */
const makeBodies = () => {
  /** Until when each counts at the latest. */
  const counted = new Map<Request, number>()
  let bytes = 0
  const letGo = (request: Request) => {
    if (!counted.delete(request)) return
    bytes -= request.bytes
    request.use.bytes -= request.bytes
  }
  return {
    ends: () => counted.values(),
    fits: (request: Request) =>
      request.bytes === 0 ||
      (bytes + request.bytes <= BODIES_BYTES_MAX && request.use.bytes + request.bytes <= SESSION_BODIES_BYTES_MAX),
    begin: (request: Request, now_ms: number) => {
      if (request.bytes === 0) return
      counted.set(request, now_ms + BODY_MS_MAX)
      bytes += request.bytes
      request.use.bytes += request.bytes
    },
    letGo,
    letGoUntil: (now_ms: number) => {
      for (const [request, until_ms] of counted) if (until_ms <= now_ms) letGo(request)
    }
  }
}

/** The slots that the requests of busy sessions hold, and let rest after them. */
const makeSlots = () => {
  /** Until when each is held or rests at the latest. */
  const holders = new Map<Request, number>()
  let calm_ms = -RESTS_FOR_MS
  const othersAsk = (now_ms: number) => now_ms - calm_ms < RESTS_FOR_MS
  return {
    ends: () => holders.values(),
    hasFree: (now_ms: number) => holders.size < (othersAsk(now_ms) ? SLOTS_BESIDE_MAX : SLOTS_MAX),
    begin: (request: Request, now_ms: number) => {
      if (!isBusy(request.use)) {
        calm_ms = now_ms
        return
      }
      holders.set(request, now_ms + SLOT_MS_MAX)
      request.use.slots += 1
    },
    /** A request is over, for which it held a slot for some time. */
    rest: (request: Request, held_ms: number, now_ms: number) => {
      if (holders.has(request)) holders.set(request, now_ms + (othersAsk(now_ms) ? restAfter(held_ms) : 0))
    },
    letGoUntil: (now_ms: number) => {
      for (const [holder, until_ms] of holders)
        if (until_ms <= now_ms) {
          holders.delete(holder)
          holder.use.slots -= 1
        }
    }
  }
}

/** The requests that wait, by session. */
const makeWaiting = () => {
  const queues = new Map<RequestUse, Array<Request>>()
  return {
    uses: () => queues.keys(),
    all: () => [...queues.values()].flat(),
    add: (request: Request) => {
      const queue = queues.get(request.use)
      if (queue === undefined) queues.set(request.use, [request])
      else queue.push(request)
      request.use.waiting += 1
    },
    remove: (request: Request) => {
      const { use } = request
      use.waiting -= 1
      const queue = (queues.get(use) ?? []).filter((each) => each !== request)
      if (queue.length > 0) queues.set(use, queue)
      else queues.delete(use)
    },
    /** The next request that may begin, taken from its queue. */
    take: (mayBegin: (request: Request) => boolean): Request | undefined => {
      let first: { readonly use: RequestUse; readonly queue: Array<Request>; readonly at: number } | undefined
      for (const [use, queue] of queues) {
        if (first !== undefined && compare(use, first.use) >= 0) continue
        const at = queue.findIndex(mayBegin)
        if (at !== -1) first = { use, queue, at }
      }
      if (first === undefined) return undefined
      const { at, queue, use } = first
      const [request] = queue.splice(at, 1)
      // The session goes behind those that are equal to it.
      queues.delete(use)
      if (queue.length > 0) queues.set(use, queue)
      use.waiting -= 1
      return request
    }
  }
}

/** Requests as data: each change begins those that may begin then. */
export const makeRequestQueue = () => {
  const waiting = makeWaiting()
  const slots = makeSlots()
  const bodies = makeBodies()

  const mayBegin = (now_ms: number) => (request: Request) =>
    (!isBusy(request.use) || slots.hasFree(now_ms) || now_ms - request.came_ms >= WAIT_MS_MAX) && bodies.fits(request)

  const begin = (request: Request, now_ms: number) => {
    request.began_ms = now_ms
    bodies.begin(request, now_ms)
    slots.begin(request, now_ms)
    request.begin()
  }

  const beginAll = (now_ms: number) => {
    slots.letGoUntil(now_ms)
    bodies.letGoUntil(now_ms)
    for (const use of waiting.uses()) forget(use, now_ms)
    const next = () => waiting.take(mayBegin(now_ms))
    for (let request = next(); request !== undefined; request = next()) begin(request, now_ms)
  }

  return {
    /** A request came; `begin` is called once it may begin, at once or later. */
    come: (use: RequestUse, body_bytes: number, now_ms: number, begin: () => void): Request => {
      const large = body_bytes > SMALL_BODY_BYTES_MAX ? Math.min(body_bytes, BODY_BYTES_MAX) : 0
      const request: Request = { use, bytes: large, begin, came_ms: now_ms, began_ms: undefined }
      forget(use, now_ms)
      use.used += 1 + body_bytes / BYTES_PER_REQUEST
      waiting.add(request)
      beginAll(now_ms)
      return request
    },
    /** It is answered, or its client is gone. */
    go: (request: Request, now_ms: number) => {
      const { began_ms } = request
      if (began_ms === undefined) waiting.remove(request)
      else {
        bodies.letGo(request)
        slots.rest(request, now_ms - began_ms, now_ms)
      }
      beginAll(now_ms)
    },
    beginAll,
    /** When the next slot or rest ends at the latest, the next body no longer counts, or the next request has waited long enough, if one waits. */
    nextEnd_ms: (now_ms: number): number | undefined => {
      const all = waiting.all()
      if (all.length === 0) return undefined
      // A request that is due already waits for room for its body alone.
      const due_ms = all.map(({ came_ms }) => came_ms + WAIT_MS_MAX)
      const end_ms = Math.min(...slots.ends(), ...bodies.ends(), ...due_ms.filter((at_ms) => at_ms > now_ms))
      return end_ms === Infinity ? undefined : end_ms
    }
  }
}

/** The queue as effects, for requests of all sessions. */
export const makeInQueue = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const queue = makeRequestQueue()
  /** When somebody looks next whether a slot or a rest has ended. */
  let looks_ms = Infinity

  /** Begins what may begin after the next end, which nothing else would notice. */
  const lookLater: Effect.Effect<void> = Effect.gen(function* () {
    const end_ms = queue.nextEnd_ms(yield* monotonicMs)
    if (end_ms === undefined || end_ms >= looks_ms) return
    looks_ms = end_ms
    const look = Effect.gen(function* () {
      yield* Effect.sleep(Math.max(1, end_ms - (yield* monotonicMs)))
      if (looks_ms === end_ms) looks_ms = Infinity
      queue.beginAll(yield* monotonicMs)
      yield* lookLater
    })
    yield* Effect.forkIn(logDeath("the look at the queue of requests")(look), scope)
  })

  return (use: RequestUse, body_bytes: number) =>
    <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.acquireUseRelease(
        Effect.gen(function* () {
          const began = Deferred.makeUnsafe<void>()
          const begin = () => Deferred.doneUnsafe(began, Effect.void)
          const request = queue.come(use, body_bytes, yield* monotonicMs, begin)
          yield* lookLater
          return { began, request }
        }),
        ({ began }) => Effect.andThen(Deferred.await(began), work),
        ({ request }) =>
          Effect.gen(function* () {
            queue.go(request, yield* monotonicMs)
            yield* lookLater
          })
      )
})
