/**
 * A streamed response. Its last event has the whole answer; some servers leave the output out of it, so that the items, or the pieces of their
 * texts, are kept as they come.
 */
import { Predicate, Result } from "effect"
import { errorIn, otherApi, problem } from "./Answer.ts"
import type { Assembler, Delta } from "./Codec.ts"
import { argumentsIn, besideIn, placeIn } from "./leniency.ts"

const keyOf = (data: unknown, key: string): unknown => (Predicate.hasProperty(data, key) ? data[key] : undefined)
const stringOf = (data: unknown, key: string): string => besideIn(keyOf(data, key))

const ENDS = new Set(["response.completed", "response.incomplete", "response.failed", "response.done"])
/** The pieces of an answer that are counted; the whole comes again at its end. */
const PIECES = /\.delta$/u
/** The weight of an item beside its text, so that many empty ones do not get around a limit. */
const ITEM_CHARS = 64

/** An item as far as it has come. */
interface Slot {
  readonly item: Readonly<Record<string, unknown>>
  text: string
  arguments: string
  isDone: boolean
}

const isMessage = (item: unknown): boolean => stringOf(item, "type") === "message"
const isCall = (item: unknown): boolean => stringOf(item, "type") === "function_call"

type Item = Readonly<Record<string, unknown>>

/** A call with the arguments that came on their way, where the call itself has none. */
const filled = (item: Item, args: string): Item =>
  args !== "" && ["", "{}"].includes(argumentsIn(item["arguments"])) ? { ...item, arguments: args } : item

/** An item that did not come whole, made of its pieces. */
const itemOf = ({ arguments: args, isDone, item, text }: Slot): Item => {
  if (isCall(item)) return filled(item, args)
  if (isDone) return item
  return isMessage(item) && text !== "" ? { ...item, content: [{ type: "output_text", text }] } : item
}

/** The items of a response, by their places. */
const makeItems = () => {
  const slots = new Map<number, Slot>()
  let newest = -1
  const slotAt = (data: unknown, item: Readonly<Record<string, unknown>> = { type: "message", role: "assistant" }) => {
    const place = placeIn(keyOf(data, "output_index")) ?? Math.max(newest, 0)
    newest = place
    const slot = slots.get(place) ?? { item, text: "", arguments: "", isDone: false }
    slots.set(place, slot)
    return slot
  }
  return {
    begin: (data: unknown, item: object) => {
      newest = placeIn(keyOf(data, "output_index")) ?? newest + 1
      slots.set(newest, { item: { ...item }, text: "", arguments: "", isDone: false })
    },
    end: (data: unknown, item: object) => {
      const open = slots.get(newest)
      const isNewest = open?.isDone === false && stringOf(open.item, "type") === stringOf(item, "type")
      const place = placeIn(keyOf(data, "output_index")) ?? (isNewest ? newest : newest + 1)
      newest = place
      const { arguments: args = "", text = "" } = slots.get(place) ?? {}
      slots.set(place, { item: { ...item }, text, arguments: args, isDone: true })
    },
    addText: (data: unknown, text: string) => void (slotAt(data).text += text),
    /** A text that comes whole and not in pieces. */
    setText: (data: unknown, text: string) => {
      const slot = slotAt(data)
      if (slot.text === "") slot.text = text
    },
    addArguments: (data: unknown, text: string) =>
      void (slotAt(data, { type: "function_call", name: "" }).arguments += text),
    setArguments: (data: unknown, text: string) => {
      const slot = slotAt(data, { type: "function_call", name: "" })
      if (slot.arguments === "") slot.arguments = text
    },
    /** An item of the whole answer, at its place. */
    fill: (item: unknown, place: number): unknown =>
      isCall(item) && typeof item === "object" && item !== null
        ? filled({ ...item }, slots.get(place)?.arguments ?? "")
        : item,
    items: () => [...slots].toSorted(([a], [b]) => a - b).map(([, slot]) => itemOf(slot)),
    size: () => slots.size
  }
}

/** Whether a whole response says something. */
const saysSomething = (output: ReadonlyArray<unknown>): boolean =>
  output.some((item) => isCall(item) || (isMessage(item) && JSON.stringify(keyOf(item, "content") ?? []) !== "[]"))

export const responsesAssembler = (): Assembler => {
  const items = makeItems()
  let response: unknown
  let chars = 0
  const deltaOf = (type: string, data: unknown): ReadonlyArray<Delta> => {
    if (type === "response.output_text.delta") return [{ type: "text", text: stringOf(data, "delta") }]
    if (type.startsWith("response.reasoning")) return [{ type: "thinking" }]
    const item = type === "response.output_item.added" ? keyOf(data, "item") : undefined
    if (stringOf(item, "type") === "reasoning") return [{ type: "thinking" }]
    return isCall(item) ? [{ type: "call", name: stringOf(item, "name") }] : []
  }
  /** The items on their way stand in for those that the end leaves out. */
  const end = (data: unknown) => {
    const whole = keyOf(data, "response")
    const output = keyOf(whole, "output")
    const listed: ReadonlyArray<unknown> = Array.isArray(output) ? output : []
    const came = items.items()
    const isBare = listed.length === 0 || (!saysSomething(listed) && saysSomething(came))
    const said = isBare ? came : listed.map(items.fill)
    response = typeof whole === "object" && whole !== null ? { ...whole, output: said } : whole
  }
  const keep = (type: string, data: unknown) => {
    const item = keyOf(data, "item")
    const isItem = typeof item === "object" && item !== null
    if (isItem && type === "response.output_item.added") items.begin(data, item)
    if (isItem && type === "response.output_item.done") items.end(data, item)
    if (isItem && type === "response.output_item.done") chars += JSON.stringify(item).length
    if (type === "response.output_text.delta") items.addText(data, stringOf(data, "delta"))
    if (type === "response.output_text.done") items.setText(data, stringOf(data, "text"))
    if (type === "response.function_call_arguments.delta") items.addArguments(data, stringOf(data, "delta"))
    if (type === "response.function_call_arguments.done") items.setArguments(data, stringOf(data, "arguments"))
    if (PIECES.test(type)) chars += stringOf(data, "delta").length
  }
  return {
    take: (data) => {
      const type = stringOf(data, "type")
      if (type === "error") {
        const wrapped = errorIn(data) ?? errorIn({ error: data })
        return Result.fail(wrapped ?? problem("http", "the provider failed", { status: 502 }))
      }
      const stranger = type === "" ? (errorIn(data) ?? otherApi(data, "responses")) : otherApi(data, "responses")
      if (stranger !== undefined) return Result.fail(stranger)
      if (ENDS.has(type)) end(data)
      else keep(type, data)
      return Result.succeed(deltaOf(type, data))
    },
    whole: (isMarked) =>
      response ??
      (isMarked && saysSomething(items.items()) ? { status: "completed", output: items.items() } : undefined),
    chars: () => chars + ITEM_CHARS * items.size()
  }
}
