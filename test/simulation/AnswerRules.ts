/** No single answer of a model ends a lane: P1 to P6, read from the stored events alone. */
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { boundModel } from "#src/agent/settings/AgentSettings.ts"
import { HALF } from "./AnswerFaults.ts"
import { Violation } from "./Kernel.ts"

type Output = EventOf<"ModelOutput">["payload"]

/** Words of simulated models alone, of which the last were cut. */
const CUT_WORDS = new RegExp(`^(?:said \\d+|${HALF} \\d+)*${HALF} \\d+$`, "u")
/** The words of an answer that no other answer has. */
const OWN_WORDS = new RegExp(`^(?:said|${HALF}) \\d+$`, "u")
/** The runtime's own words on a model that said nothing. */
const SAID_NOTHING = /reply was empty|no usable result/u
/** Compactions that a lane asks for in a row, none of which was committed: for each of an order and of a full window two, and one for a quotation. */
const COMPACTIONS_ASKED_MAX = 6
/** What may pass between the last look at a job's age and its end, in ms. */
const AGE_SLACK_MS = 5000

/** In the place of what no store can hold. */
const REPLACED_CHARACTER = "\uFFFD"

/** Servers that always show their model's thoughts. */
const THINKERS = ["kimi", "deepseek", "gemini", "responses", "anthropic"]

/** Whether the input of a call goes back as its model wrote it. */
const isAsWritten = (input: unknown): boolean =>
  typeof input === "object" && !JSON.stringify(input).includes(REPLACED_CHARACTER)

const isTurn = ({ purpose }: Output): boolean => purpose === "turn" || purpose === "report"
const isFinal = ({ error, tool_calls }: Output): boolean => error === undefined && tool_calls.length === 0
const isPassing = ({ kind, status = 0 }: NonNullable<Output["error"]>): boolean =>
  kind === "timeout" || kind === "unreachable" || kind === "rate_limited" || (kind === "http" && status >= 500)

export class AnswerRules {
  readonly #config: AgentConfig
  /** Whether the host's time of day tells how old a job is. */
  readonly #isTimely: boolean
  /** The outputs of each lane's open turn or job. */
  readonly #outputs = new Map<LaneId, Array<Output>>()
  readonly #began = new Map<LaneId, EventOf<"CoreStarted">>()
  readonly #said = new Set<string>()
  readonly #cut = new Set<string>()
  readonly #compactions = new Map<LaneId, number>()
  #epoch = 0

  constructor(config: AgentConfig, isTimely: boolean) {
    this.#config = config
    this.#isTimely = isTimely
  }

  event(event: ChoirEvent, epoch: number): void {
    // What an agent asked for before it died, it asks for again.
    if (epoch !== this.#epoch) this.#compactions.clear()
    this.#epoch = epoch
    switch (event.event_type) {
      case "UserMsg":
        return void this.#outputs.delete(EDGE)
      case "CoreStarted":
        this.#began.set(event.lane, event)
        this.#compactions.delete(event.lane)
        return void this.#outputs.delete(event.lane)
      case "ModelOutput":
        return this.#output(event)
      case "CompactionCommitted":
        return void this.#compactions.delete(event.lane)
      case "ToolCallRequested":
        if (this.#cut.has(event.payload.call_id))
          throw new Violation("P1", `${event.payload.tool} at ${event.rev} begins, whose call was cut`)
        return
      case "AgentMessage":
        if (event.payload.kind === "notice") return
        this.#ends(EDGE, event.payload.text ?? "")
        return void this.#outputs.delete(EDGE)
      case "Cancelled":
        // A stopped turn ends with the runtime's words, which quote how the job ended that it was to tell of.
        if (event.payload.target === EDGE) this.#outputs.delete(EDGE)
        return
      case "CoreStopped":
        return this.#stopped(event)
      default:
        return
    }
  }

  #output({ lane, payload, rev }: EventOf<"ModelOutput">): void {
    const { error, model, purpose, text = "", tool_calls } = payload
    if (OWN_WORDS.test(text)) {
      if (this.#said.has(text)) throw new Violation("P1", `"${text}" is committed twice, the second time at ${rev}`)
      this.#said.add(text)
    }
    const last = tool_calls.at(-1)
    if (text.startsWith(HALF) && last !== undefined) this.#cut.add(last.call_id)
    this.#reasoning(payload, rev)
    const left = boundModel(this.#config, model)?.fallback ?? []
    const isOfSeveral = error?.message.includes("; then ") === true
    if (error !== undefined && isPassing(error) && left.length > 0 && !isOfSeveral)
      throw new Violation("P4", `the model "${model}" failed at ${rev}, and no fallback was asked: ${error.message}`)
    if (purpose === "compaction") {
      const asked = (this.#compactions.get(lane) ?? 0) + 1
      this.#compactions.set(lane, asked)
      if (asked > COMPACTIONS_ASKED_MAX)
        throw new Violation("P6", `${lane} asks at ${rev} for the ${asked}th compaction and commits none`)
    }
    if (!isTurn(payload)) return
    const outputs = this.#outputs.get(lane) ?? []
    outputs.push(payload)
    this.#outputs.set(lane, outputs)
  }

  /** P5: what a model thought before it called is kept with the calls. */
  #reasoning({ continuation, finish_reason, model, tool_calls }: Output, rev: number): void {
    const endpoint = boundModel(this.#config, model)?.endpoint ?? ""
    const isThought = THINKERS.some((dialect) => endpoint.includes(`/${dialect}/`))
    const isUsable =
      tool_calls.length > 0 && tool_calls.every(({ input, refused }) => refused === undefined && isAsWritten(input))
    if (isThought && isUsable && finish_reason === "tool_calls" && continuation === undefined)
      throw new Violation("P5", `the output at ${rev} has calls without the thoughts that led to them`)
  }

  /** P1 and P2: what a lane ends with. */
  #ends(lane: LaneId, words: string): void {
    if (CUT_WORDS.test(words)) throw new Violation("P1", `${lane} ends with words that were cut: ${words}`)
    const [last, before] = (this.#outputs.get(lane) ?? []).slice(-2).toReversed()
    // Where the last answer failed, the runtime tells of a job in its own words, which quote how the job ended.
    if (SAID_NOTHING.test(words) && last !== undefined && isFinal(last) && (before === undefined || !isFinal(before)))
      throw new Violation("P2", `one empty answer ends ${lane}`)
  }

  /** P3: what a model's failure ended can be resumed while there is time. */
  #stopped({ created_at, lane, payload }: EventOf<"CoreStopped">): void {
    const { outcome, resumable, summary } = payload
    const failed = this.#outputs.get(lane)?.at(-1)?.error
    const began = this.#began.get(lane)
    this.#ends(lane, summary)
    if (outcome !== "error" || failed === undefined || resumable !== undefined || !summary.startsWith(failed.message))
      return
    if (!this.#isTimely || began === undefined) return
    const age_ms = Date.parse(created_at) - Date.parse(began.created_at)
    if (age_ms + AGE_SLACK_MS < began.payload.budgets.wall_time_ms)
      throw new Violation("P3", `${lane} ended by its model's error and cannot be resumed: ${summary}`)
  }
}
