import { hasFixes, NODE_RELEASE } from "./securityReleases.ts"

/** The version of Choir, as `--version`, `status`, backups and sessions name it. */
export const VERSION = "0.1.0"

/** The Node releases that Choir runs on, for messages; bin/launch.sh and the pages say the same. */
export const NODE_RELEASES = `Node ${NODE_RELEASE.fixed.slice(0, -1).join(", ")} or ${NODE_RELEASE.fixed.at(-1)}, or a later release of these lines`

/** Why Choir does not run on this version of Node and what helps, or `undefined` when it does. */
export const nodeProblem = (version: string): string | undefined =>
  hasFixes(NODE_RELEASE, version)
    ? undefined
    : `Node ${version} lacks a security release. Choir needs ${NODE_RELEASES}. A checkout of Choir brings its own: npm ci && npm run link`
