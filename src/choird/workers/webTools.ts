/** The host tools of the web. */
import { Effect } from "effect"
import { webFetch } from "./webFetch.ts"

export const webTools = Effect.map(webFetch, (fetch) => [fetch])
