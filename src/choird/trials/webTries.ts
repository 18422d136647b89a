/** A page of the web, tried by the tools that agents have and in the way that they take. */
import { randomBytes } from "node:crypto"
import { Clock, Effect, Result, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import { AgentId, CallId } from "#schema/Ids.ts"
import type { Tried } from "#schema/SystemApi.ts"
import { HostTools } from "#src/choird/hosttools/HostTools.ts"
import { sessionId } from "#src/choird/sessions/SessionStore.ts"
import { chromiumProgram } from "#src/shared/web/chromium.ts"
import { BROWSE_TOOL, FETCH_TOOL } from "#src/shared/web/hostQueries.ts"
import { SANDBOX_FIX } from "#src/choird/workers/BrowserProcess.ts"
import { tried } from "./tried.ts"

/** The page that is tried: it is made for such use, small, and has addresses of both families. */
export const TRIED_PAGE = "https://example.com/"
/** Characters of a tool's words in a line. */
const TOOL_WORDS_CHARS_MAX = 200

const WEB_FIX = `Check this host's network, its name server and its clock: curl -I ${TRIED_PAGE}`

const decodeError = Schema.decodeUnknownOption(Schema.Struct({ error: Schema.String }))

/** Why a tool is not tried, or `undefined`. */
const whySkipped = ({ agents, runtime }: Config, tool: "fetch" | "browse"): string | undefined => {
  const { host } = new URL(TRIED_PAGE)
  if (runtime.network === "allowlist" && !runtime.allow.some((entry) => entry === host || entry === `${host}:443`))
    return `runtime.network is allowlist, without ${host}`
  const kinds = new Set(Object.values(agents).map(({ web }) => web))
  if (tool === "fetch") return kinds.has("fetch") || kinds.has("browse") ? undefined : "no agent reads pages"
  if (!kinds.has("browse")) return "no agent has a browser"
  return chromiumProgram() === undefined ? "Chromium is not installed" : undefined
}

/** Makes what tries the page by both tools. */
export const makeWebTries = Effect.gen(function* () {
  const hostTools = yield* HostTools

  /** One call of a tool for nobody's session; the problem in words, or `undefined`. */
  const call = Effect.fnUntraced(function* (tool_name: string, input: Readonly<Record<string, string>>) {
    const scope = yield* Effect.scope
    const session_id = sessionId(yield* Clock.currentTimeMillis, randomBytes(4))
    const caller = { agent_id: AgentId.make("doctor"), session_id }
    const request = { tool_name, call_id: CallId.make("doctor-1-0"), input }
    const outcome = yield* Effect.result(hostTools.runOnce(caller, request, scope))
    if (Result.isFailure(outcome)) return outcome.failure.message
    const { output, status } = outcome.success
    if (status === "success") return undefined
    const words = decodeError(output)
    return words._tag === "Some" ? words.value.error : `it ended with ${status}`
  }, Effect.scoped)

  const tool = Effect.fnUntraced(function* (
    name: string,
    skipped: string | undefined,
    done: string,
    called: Effect.Effect<string | undefined>
  ): Effect.fn.Return<Tried> {
    if (skipped !== undefined) return tried(name, "skip", skipped)
    const problem = yield* called
    if (problem === undefined) return tried(name, "ok", `${TRIED_PAGE} ${done}`)
    // A browser that does not start brings its own advice.
    const [words = "", of_browser] = problem.split(`. ${SANDBOX_FIX}`)
    const fix = of_browser === undefined ? WEB_FIX : SANDBOX_FIX
    // A host may be offline on purpose.
    return tried(name, "warn", `${TRIED_PAGE}: ${words.slice(0, TOOL_WORDS_CHARS_MAX)}`, fix)
  })

  return (config: Config) => [
    tool("page", whySkipped(config, "fetch"), "was fetched", call(FETCH_TOOL, { url: TRIED_PAGE })),
    tool(
      "page in a browser",
      whySkipped(config, "browse"),
      "was opened",
      call(BROWSE_TOOL, { action: "open", url: TRIED_PAGE })
    )
  ]
})
