/**
 * The search of long-term memory for a user's message: one request to choird, before the first call of a turn. A turn waits for it as long as a person
 * hardly notices beside the model's own time; an answer that comes later is left out of this turn, and the next one asks again.
 */
import { Cause, Context, Effect, Layer, Schema } from "effect"
import type { Recalled } from "#schema/Event.ts"
import { CallId, Rev } from "#schema/Ids.ts"
import { ToolName } from "#schema/Tool.ts"
import { RecallAnswer, type RecallInput } from "#src/shared/memory/hostQueries.ts"
import { estimateTokens } from "#src/shared/model/usage.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Denied } from "#src/agent/control/verbAnswer.ts"
import { recalledNote } from "#src/agent/model/prompt/recalledNote.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"

/** How long a turn waits for its memory. */
const RECALL_MS_MAX = 3000
/** Characters of a message that memory is searched for. */
const MESSAGE_CHARS_MAX = 4000

const TOOL = ToolName.make("choir.memory.recall")

/** The long-term memory in a turn's prompts. */
export interface Recollected {
  /** The user's message. */
  readonly rev: number
  readonly text: string
  readonly recalled: Recalled
}

export class Recollection extends Context.Service<
  Recollection,
  {
    /** Asks for the open turn, once. */
    readonly prepare: Effect.Effect<void>
    /** The answer for the open turn. */
    readonly found: () => Recollected | undefined
  }
>()("choir/agent/Recollection") {
  static readonly layer = Layer.effect(
    Recollection,
    Effect.suspend(() => make)
  )
}

const decode = Schema.decodeUnknownEffect(RecallAnswer)

const make = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const plane = yield* ControlPlane
  const settings = yield* AgentSettings
  let asked_rev = 0
  let found: Recollected | undefined
  /** Choird has no such tool. */
  let isMissing = false

  /** The turn to ask for: a message of the user that no call was made for yet. */
  const due = () => {
    const { edge } = arbiter.state()
    if (edge.turn?.kind !== "turn" || edge.step > 0 || edge.turn.rev === asked_rev) return undefined
    const event = log.find(edge.turn.rev)
    return event?.event_type === "UserMsg" && event.payload.text.trim() !== ""
      ? {
          rev: edge.turn.rev,
          text: event.payload.text,
          shown_from: edge.window.find((rev) => rev > edge.boundary) ?? edge.turn.rev
        }
      : undefined
  }

  const ask = Effect.fnUntraced(function* (rev: number, input: RecallInput) {
    const started = yield* monotonicMs
    const call = { tool_name: TOOL, call_id: CallId.make(`recall-${rev}`), input, timeout_ms: RECALL_MS_MAX }
    const { output, status } = yield* plane.execute(call)
    if (status !== "success") return
    const { cost_usd, hits, ranked_by } = yield* decode(output)
    const note = recalledNote(hits)
    if (note === undefined) return
    const recalled: Recalled = {
      rows: note.rows.map(({ id }) => id),
      tokens: estimateTokens(note.text.length),
      ranked_by,
      latency_ms: Math.max(0, Math.round((yield* monotonicMs) - started)),
      ...(cost_usd === 0 ? {} : { cost_usd })
    }
    found = { rev, text: note.text, recalled }
  })

  /** Without memory the turn runs all the same, after any failure. */
  const leftOut = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    const error = Cause.squash(cause)
    isMissing = error instanceof Denied && error.type === "NOT_AVAILABLE"
    if (!isMissing) yield* Effect.logWarning("a turn runs without its memory", cause)
  })

  return Recollection.of({
    found: () => (found !== undefined && arbiter.state().edge.turn?.rev === found.rev ? found : undefined),
    prepare: Effect.gen(function* () {
      const turn = due()
      const { recall_tokens_max: tokens_max } = settings.current().config.memory
      if (turn === undefined || tokens_max === 0 || isMissing) return
      asked_rev = turn.rev
      const text = turn.text.slice(0, MESSAGE_CHARS_MAX).toWellFormed()
      yield* ask(turn.rev, { text, tokens_max, shown_from: Rev.make(turn.shown_from) }).pipe(
        Effect.timeout(RECALL_MS_MAX),
        Effect.catchCause((cause) => (Cause.hasInterrupts(cause) ? Effect.interrupt : leftOut(cause)))
      )
    })
  })
})
