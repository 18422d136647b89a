/** The host tool `choir.web.browse`: one action in the agent's own browser, answered with the page as it is then. */
import { Effect } from "effect"
import { failed, type HostOutcome, makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { actsOnPage, BROWSE_TOOL, BrowseInput } from "#src/shared/web/hostQueries.ts"
import { BrowserWorker } from "./BrowserWorker.ts"

/** A whole call, with the start of Chromium (R73). */
const BROWSE_MS_MAX = 60_000

/** The tool. */
export const webBrowse = Effect.map(BrowserWorker, (worker) =>
  makeHostTool({
    name: BROWSE_TOOL,
    effect: "external",
    effectOf: ({ action }) => (actsOnPage(action) ? "external" : "none"),
    timeout_ms: BROWSE_MS_MAX,
    input: BrowseInput,
    run: Effect.fn("webBrowse.run")(
      function* (input, { session_id }, epoch, call) {
        if (epoch === undefined) return failed("error", "there is no session for a browser to belong to")
        const browser = yield* worker.of(session_id, epoch)
        const output = yield* browser.act(input, call)
        return { status: "success", output: { ...output } } satisfies HostOutcome
      },
      Effect.catchTags({
        BrowserUnavailable: ({ message }) => Effect.succeed(failed("error", message)),
        ActionFailed: ({ is_unknown, place, problem }) =>
          Effect.succeed<HostOutcome>({
            status: is_unknown ? "timeout" : "error",
            output: { error: problem, ...place }
          })
      })
    )
  })
)
