/** choir.web.browse: the agent's own browser, which choird runs. */
import { Effect, Schema, Struct } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import { LockRequest, type ToolEffect } from "#schema/Tool.ts"
import { actsOnPage, BROWSE_TOOL, BrowseInput } from "#src/shared/web/hostQueries.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { hostTool } from "./hostTool.ts"
import type { Tool, ToolOutcome } from "./Tool.ts"
import { makeEffectOfAddress, siteOf } from "./webFetch.ts"

/** More than choird gives an action. */
const BROWSE_MS_MAX = 62_000

const DESCRIPTION =
  "Your own browser. open shows a page as a tree with refs; click, type, select and press act on a ref of the newest tree and show the page again. read gives Markdown, screenshot a picture. To follow a link, open its /url. To only read, fetch the page."

/** The input as models see it: a long tree is narrowed by a ref, and to limit its levels is accepted all the same. */
const { depth: _, ...OFFERED } = BrowseInput.fields

const decodeShort = Schema.decodeUnknownOption(
  Schema.Struct({ action: Schema.String, url: Schema.optionalKey(Schema.String) })
)

/** The outcome without the picture's bytes, which go to the workspace. */
const withPicture = Effect.fnUntraced(function* (outcome: ToolOutcome, pictures: Pictures["Service"]) {
  const { output } = outcome
  if (typeof output !== "object" || output === null || !("picture" in output)) return outcome
  const { picture: base64, ...rest } = output
  if (typeof base64 !== "string") return outcome
  const looked = yield* pictures.keep(Buffer.from(base64, "base64"))
  const words = looked?.picture === undefined ? (looked?.problem ?? "it is not a picture") : looked.words
  return {
    ...outcome,
    output: { ...rest, screenshot: words },
    ...(looked?.picture === undefined ? {} : { pictures: [looked.picture] })
  }
})

/** The outcome of an action that only looks at a page. */
const notActed = (outcome: ToolOutcome): ToolOutcome => Struct.omit(outcome, ["acted"])

export const webBrowse = Effect.gen(function* () {
  const effectOfAddress = yield* makeEffectOfAddress
  const pictures = yield* Pictures
  const tool = yield* hostTool({
    name: BROWSE_TOOL,
    description: DESCRIPTION,
    input: BrowseInput,
    offered: Schema.Struct(OFFERED),
    effect: "external",
    lanes: "both",
    locks: [LockRequest.make({ resource: "browser_tab", mode: "X" })],
    timeout_ms: BROWSE_MS_MAX,
    sources: siteOf
  })
  const effectOf = (raw: unknown, lane: LaneId | undefined): ToolEffect => {
    const input = decodeShort(raw)
    if (input._tag === "None") return "external"
    const { action, url } = input.value
    if (actsOnPage(action)) return "external"
    return action === "open" && url !== undefined
      ? effectOfAddress({ address: url, any_fragment: false }, lane)
      : "none"
  }
  const browse: Tool = {
    ...tool,
    prepare: (raw, lane) =>
      Effect.map(tool.prepare(raw), (prepared) => {
        const effect = effectOf(raw, lane)
        return {
          ...prepared,
          effect,
          run: (context) =>
            Effect.flatMap(prepared.run(context), (outcome) =>
              withPicture(effect === "none" ? notActed(outcome) : outcome, pictures)
            )
        }
      })
  }
  return browse
})
