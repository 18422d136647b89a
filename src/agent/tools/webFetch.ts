/** choir.web.fetch: a page of the web as text, by choird. */
import { Effect, Schema } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import type { ToolEffect } from "#schema/Tool.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { sourceOf } from "#src/shared/session/sources.ts"
import { FETCH_TOOL, FetchInput, Unasked } from "#src/shared/web/hostQueries.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { hostTool } from "./hostTool.ts"
import { isKnownAddress, type WantedAddress } from "./knownAddresses.ts"
import { mayTellSite } from "./toldAddresses.ts"
import type { Tool, ToolOutcome } from "./Tool.ts"

/** More than choird gives a fetch. */
const FETCH_MS_MAX = 32_000

const isUnasked = Schema.is(Unasked)

const decodePlace = Schema.decodeUnknownOption(
  Schema.Struct({ url: Schema.String, sites: Schema.optionalKey(Schema.Array(Schema.String)) })
)

/** Where the text of an answer or of a failure came from: the page, after redirects, and all that was in its tab. */
export const siteOf = (output: Schema.Json): ReadonlyArray<Source> => {
  const found = decodePlace(output)
  if (found._tag === "None") return []
  const { sites = [], url } = found.value
  const hosts = new Set([URL.parse(url)?.hostname ?? "", ...sites])
  if (sites.length > 0) hosts.delete("")
  return [...hosts].map((host) => sourceOf("web", host))
}

/**
 * The effect of a request to an address that a lane names. An address of the model's own making can carry what the lane knows to the site
 * that serves it, and a row of known ones can spell it, so where a person is asked about such things, both are external.
 */
export const makeEffectOfAddress = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const settings = yield* AgentSettings
  return (wanted: WantedAddress, lane: LaneId | undefined): ToolEffect => {
    const { confirm_external } = settings.current().config.approvals
    const tainted = lane === undefined || laneOf(arbiter.state(), lane)?.tainted !== false
    const asks = confirm_external === "always" || (confirm_external === "tainted" && tainted)
    return asks && !(isKnownAddress(log, wanted) && mayTellSite(log, wanted)) ? "external" : "none"
  }
})

const DESCRIPTION =
  "Read a public web page as Markdown, or a text file. An address that you were not shown may need approval."

export const webFetch = Effect.gen(function* () {
  const effectOf = yield* makeEffectOfAddress
  const tool = yield* hostTool({
    name: FETCH_TOOL,
    description: DESCRIPTION,
    input: FetchInput,
    effect: "none",
    lanes: "both",
    locks: [],
    timeout_ms: FETCH_MS_MAX,
    sources: siteOf
  })
  const fetch: Tool = {
    ...tool,
    prepare: (raw, lane) =>
      Effect.map(tool.prepare(raw), (prepared) => {
        // choird has the page of a further part, so that no site is asked.
        const effect = isFurtherPart(raw) ? "none" : effectOf({ address: addressIn(raw), any_fragment: true }, lane)
        if (effect === "none") return { ...prepared, effect }
        return { ...prepared, effect, run: (context) => Effect.map(prepared.run(context), told) }
      })
  }
  return fetch
})

/**
 * An address that carries something has acted once its site was asked for it. What failed may have reached the site all the same, unless choird
 * says that it refused the address before it asked anybody.
 */
const told = (outcome: ToolOutcome): ToolOutcome =>
  isUnasked(outcome.output) ? outcome : { ...outcome, acted: outcome.status === "success" ? "accepted" : "unknown" }

const isFurtherPart = (raw: unknown): boolean =>
  typeof raw === "object" && raw !== null && "offset" in raw && typeof raw.offset === "number" && raw.offset > 0

const addressIn = (raw: unknown): string =>
  typeof raw === "object" && raw !== null && "url" in raw && typeof raw.url === "string" ? raw.url : ""
