/** Where the executable of a manifest lies. One rule for choird, which bakes it, and for the agent, which runs it. */

/** The folders below `tools/` of an image; an agent's own tool overrides a global one of its name. */
export type ToolScope = "global" | "agent"

/**
 * The path of a tool's executable inside its folder `tools/<scope>`, or `undefined` when `exec_path` leaves that folder. It may be
 * written as in the image (`/choir/tools/<scope>/x`) or relative to the folder (`x`).
 */
export const toolExecutable = (scope: ToolScope, exec_path: string): string | undefined => {
  const root = `/choir/tools/${scope}/`
  const path = exec_path.startsWith(root) ? exec_path.slice(root.length) : exec_path
  const clean = path.split("/").every((part) => part !== "" && part !== "." && part !== "..")
  return clean && !/\p{C}/u.test(path) ? path : undefined
}
