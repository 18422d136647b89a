/**
 * P4: how often one question is sent to a model: once more where its connection broke before an answer, once more after a rate limit, and
 * no more; a job that waits for its provider asks the same again after a pause. A question is known by its text, which no two calls of a lane share.
 */
import type { ChoirEvent } from "#schema/Event.ts"
import { type Asked, isCompaction } from "./asked.ts"
import { type Kernel, type Process, Violation } from "./Kernel.ts"
import type { Request } from "./Network.ts"

/** A question, its second try after a broken connection, and both again after a rate limit. */
const ATTEMPTS_MAX = 4
/** The model of a compaction is asked twice, and where it failed by the same words. */
const COMPACTION_ASKS = 2
/** The time in which a question is sent no more often, in ms: the shortest pause of a job that waits. */
const PAUSE_MS = 5000
/** How soon a broken connection is tried again, in ms; in truth at once. */
const RETRIED_MS_MAX = 1000

/** Whether somebody or something interrupts a lane's call. */
const interrupts = ({ event_type, payload }: ChoirEvent): boolean =>
  event_type === "Cancelled" ||
  (event_type === "ModelOutput" && "purpose" in payload && payload.purpose === "interrupted") ||
  (event_type === "CoreStopped" && "outcome" in payload && payload.outcome !== "error")

export class Attempts {
  readonly #kernel: Kernel
  /** When a process sent each question. */
  readonly #sent = new WeakMap<Process, Map<string, Array<number>>>()
  readonly #interrupted_ms = new WeakMap<Process, number>()

  constructor(kernel: Kernel) {
    this.#kernel = kernel
  }

  #of(from: Process): Map<string, Array<number>> {
    const known = this.#sent.get(from) ?? new Map<string, Array<number>>()
    this.#sent.set(from, known)
    return known
  }

  committed(process: Process, events: ReadonlyArray<ChoirEvent>): void {
    if (events.some(interrupts)) this.#interrupted_ms.set(process, this.#kernel.now)
  }

  sent({ body, from }: Request): void {
    const sent = this.#of(from)
    sent.set(body, [...(sent.get(body) ?? []), this.#kernel.now])
  }

  arrived({ body, from }: Request, asked: Asked): void {
    const since = this.#kernel.now - PAUSE_MS
    const times = (this.#of(from).get(body) ?? []).filter((at) => at > since).length
    const most = ATTEMPTS_MAX * (isCompaction(asked) ? COMPACTION_ASKS : 1)
    if (times > most) throw new Violation("P4", `a model is asked the same ${times} times, of ${most}`)
  }

  /** A connection breaks before the first byte of its answer, while its client waits. */
  broke({ body, from }: Request): void {
    const kernel = this.#kernel
    const sent = this.#of(from)
    const began = kernel.now
    if (sent.get(body)?.length !== 1) return
    kernel.after(kernel.world, RETRIED_MS_MAX, () => {
      const isThere = from.alive && from.frozen_until < began && (this.#interrupted_ms.get(from) ?? 0) < began
      if (isThere && sent.get(body)?.length === 1)
        throw new Violation("P4", "a connection broke before its answer, and the model was not asked again")
    })
  }
}
