/** How a path that a model wrote is read; locks and files must agree on it, so there is one reading (D27, R18, R40). */

/** Finds an empty, `.` or `..` name, and with it every leading, trailing or doubled slash. */
const IRREGULAR = /(^|\/)\.{0,2}(\/|$)/u

/** Whether a path begins in a home as shells write it, which the workspace does not have: a file tool would make a folder named `~`. */
export const isOfShellHome = (path: string): boolean => path === "~" || path.startsWith("~/")

/**
 * The path from the workspace's root down, "" for the root, or `undefined` when it leads outside. An absolute path counts when it
 * starts with `/workspace`, whatever the real root is. `..` is taken back by spelling, exact as no link is ever followed.
 */
export const pathInside = (path: string): string | undefined => {
  if (isOfShellHome(path)) return undefined
  if (!IRREGULAR.test(path)) return path
  const parts = path.split("/").filter((part) => part !== "" && part !== ".")
  if (path.startsWith("/") && parts.shift() !== "workspace") return undefined
  const names: Array<string> = []
  for (const part of parts) {
    if (part !== "..") names.push(part)
    else if (names.pop() === undefined) return undefined
  }
  return names.join("/")
}
