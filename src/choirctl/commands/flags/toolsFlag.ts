/** The option `--tools` of `skill add` and `skill check`: names of tools in one text. */
import { Option } from "effect"
import { Flag } from "effect/cli"

const SEPARATORS = /[\s,]+/u

export const toolsFlag = Flag.String("tools").pipe(
  Flag.withDescription("Tools that it may use, instead of those that it names"),
  Flag.optional
)

/** The names in the option; empty without it. */
export const toolNames = (given: Option.Option<string>): ReadonlyArray<string> =>
  Option.match(given, {
    onNone: () => [],
    onSome: (names) => names.split(SEPARATORS).filter((name) => name !== "")
  })
