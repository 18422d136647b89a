/** The engine's events of a build, one JSON document a line: decoded strictly, shown as plain text, and capped. */
import { Option, Schema } from "effect"

/** A line of a build as it is shown. */
export const BUILD_LINE_CHARS_MAX = 400
/** Lines of a build that are shown; after them only its steps. */
export const BUILD_LINES_SHOWN_MAX = 5000
/** Lines of the last step's output that a failed build repeats. */
export const BUILD_TAIL_LINES = 15

/** An image's id, as the engine spells it. */
const ImageId = Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/u))

/** The fields that matter here; the engine adds others, of downloads for example. */
const BuildEvent = Schema.Struct({
  stream: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(Schema.String),
  error: Schema.optionalKey(Schema.String),
  aux: Schema.optionalKey(Schema.Struct({ ID: Schema.optionalKey(ImageId) }))
})

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(BuildEvent))

/** The result of a build, as far as its events show. */
export interface BuildOutcome {
  /** The id of the finished image. */
  readonly image_id: string | undefined
  /** The engine's own message about a failure. */
  readonly error: string | undefined
  /** The instruction that ran last, as the engine shows it. */
  readonly step: string | undefined
  /** The end of what the builds' programs printed. */
  readonly tail: ReadonlyArray<string>
}

/** A line without the colours and progress bars that programs print. */
const plain = (text: string) =>
  text
    // eslint-disable-next-line no-control-regex -- the sequences begin with an escape character
    .replaceAll(/\u{1B}\[[0-9;?]*[A-Za-z]/gu, "")
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, BUILD_LINE_CHARS_MAX)

const STEP = /^Step \d+\/\d+ : (.*)$/u
/** The builder's own messages about layers and containers. */
const CHATTER = /^(?:---> |Removing intermediate container |\[Warning\] |Successfully built )/u

/** Reads a build's lines one after the other. */
export const makeBuildReader = () => {
  let image_id: string | undefined
  let error: string | undefined
  let step: string | undefined
  let shown = 0
  let tail: ReadonlyArray<string> = []
  return {
    /** The lines to show for this one, or undefined when it is not an event of a build. */
    push(line: string): ReadonlyArray<string> | undefined {
      if (line.trim() === "") return []
      const event = Option.getOrUndefined(decodeEvent(line))
      if (event === undefined) return undefined
      image_id = event.aux?.ID ?? image_id
      error ??= event.error === undefined ? undefined : plain(event.error)
      const lines = (event.stream ?? "")
        .split(/[\r\n]+/u)
        .map(plain)
        .filter((text) => text !== "" && !CHATTER.test(text))
      for (const text of lines) {
        const begun = STEP.exec(text)?.[1]
        step = begun ?? step
        tail = begun === undefined ? [...tail, text].slice(-BUILD_TAIL_LINES) : []
      }
      const first = shown
      shown += lines.length
      return lines.filter((text, index) => first + index < BUILD_LINES_SHOWN_MAX || STEP.test(text))
    },
    outcome: (): BuildOutcome => ({ image_id, error, step, tail })
  }
}
