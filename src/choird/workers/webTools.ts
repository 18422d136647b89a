/** The host tools of the web. */
import { Effect } from "effect"
import { webBrowse } from "./webBrowse.ts"
import { webFetch } from "./webFetch.ts"

export const webTools = Effect.all([webFetch, webBrowse])
