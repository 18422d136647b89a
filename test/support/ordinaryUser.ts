/** Whether programs of this checkout can be run as a user that nothing on this machine belongs to. */
import { statSync } from "node:fs"
import { dirname } from "node:path"
import { ROOT } from "./installation.ts"
import { leaveOut } from "./packages.ts"

const reachableByAll = (path: string): boolean =>
  (statSync(path).mode & 0o005) === 0o005 && (dirname(path) === path || reachableByAll(dirname(path)))

/** Why a suite with another user is left out here, or `undefined`. */
export const whyNoOtherUser = (suite: string): string | undefined =>
  process.getuid?.() === 0 && !reachableByAll(ROOT) ? leaveOut(suite, `others may not read ${ROOT}`) : undefined
