/** The brief of each morning. A new agent begins nothing by itself: a person sees the price and names the time, or has no brief. */
import { join } from "node:path"
import { Effect, FileSystem, Result } from "effect"
import type { Model } from "#schema/Config.ts"
import { skillBounds } from "#src/shared/image/skillBounds.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { readSchedule } from "#src/shared/image/skillSchedule.ts"
import { BUILT_IN_FACTS } from "#src/shared/image/toolFacts.ts"
import { answerTokensOf } from "#src/shared/model/quirks.ts"
import { GLOBAL_STARTER } from "./repositories.ts"

const NAME = "daily-brief"
const FILE = `skills/${NAME}.json`

/** An ordinary run, of which the most that one may cost says little: its calls, and the tokens of each. */
const USUAL_CALLS = 8
const USUAL_INPUT_TOKENS = 10_000
const USUAL_OUTPUT_TOKENS = 500
const MILLION = 1_000_000

/** The schedule of a time as people type it, such as `7:30` or `07:30 in Europe/Berlin`, or why it is none. */
export const briefSchedule = (typed: string): Result.Result<string, string> => {
  const [, hour, rest] = /^(\d{1,2})(:\d\d(?: in .+)?)$/u.exec(typed.trim()) ?? []
  if (hour === undefined) return Result.fail("Enter a time such as 07:30, or 07:30 in Europe/Berlin")
  return Result.map(readSchedule(`daily at ${hour.padStart(2, "0")}${rest}`), ({ text }) => text)
}

const starterText = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(join(GLOBAL_STARTER, FILE)))

/** The starter's skill as a file of an agent's own repository, where it begins at the time of a schedule. */
export const briefFile = Effect.fn("briefFile")(function* (schedule: string) {
  const skill = JSON.parse(yield* starterText) as {
    readonly registry: { readonly triggers: ReadonlyArray<unknown> }
  }
  const triggers = [...skill.registry.triggers, { kind: "schedule", match: schedule, mode: "start" }]
  const text = JSON.stringify({ ...skill, registry: { ...skill.registry, triggers } }, undefined, 2)
  return { [FILE]: `${text}\n` }
})

const dollars = (usd: number) => `$${usd.toFixed(2)}`

/** The offer of a brief, in sentences. */
export const briefOffer = Effect.fn("briefOffer")(function* (model: Model) {
  const { context_window, price } = model
  const spec = Result.getOrThrowWith(readSkill(NAME, yield* starterText), (problems) => new Error(problems.join("; ")))
  const working = { context_window, max_tokens: answerTokensOf(model), price }
  const { model_calls, usd } = skillBounds(spec, BUILT_IN_FACTS, working)
  const usual =
    price === undefined
      ? undefined
      : (USUAL_CALLS * (USUAL_INPUT_TOKENS * price.input + USUAL_OUTPUT_TOKENS * price.output)) / MILLION
  return [
    "A daily brief reads the agent's files and memory and sends you what is due, in at most 150 words.",
    usual === undefined || usd === null
      ? `The price of ${model.model} is unknown; a brief asks it about ${USUAL_CALLS} times, and never more than ${model_calls} times.`
      : `With ${model.model} it costs about ${dollars(usual)} a day, and never more than ${dollars(usd)}.`,
    "Without it nothing begins by itself."
  ]
})
