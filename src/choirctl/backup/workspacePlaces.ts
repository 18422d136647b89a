/** Where the workspaces of a home may lie. Backup and restore follow the same rule, so that what is backed up can be restored. */
import { resolve } from "node:path"
import type { Config } from "#schema/Config.ts"
import { isRelativePath } from "./manifest.ts"

/** Folders of a home that Choir fills. Git runs hooks from one of them, and choird trusts what lies in the others. */
const CHOIRS_OWN = new Set([
  "sources",
  "data",
  "socks",
  "images",
  "repos",
  "logs",
  "archive",
  "metrics.token",
  "backup.lock",
  "choird.lock",
  "files.lock"
])

/** The path of a workspace below its home; nothing for one that lies elsewhere. */
export const pathInHome = (path: string, home: string) => {
  const absolute = resolve(path)
  const relative = absolute.startsWith(`${home}/`) ? absolute.slice(home.length + 1) : undefined
  return relative !== undefined && isRelativePath(relative) ? relative : undefined
}

/**
 * A workspace in a folder whose files Choir or git acts on. Its contents come from an agent, or from those who made the backup, and would
 * be run or trusted there.
 */
export const misplacedWorkspace = ({ workspaces }: Config, home: string) => {
  for (const [name, { path }] of Object.entries(workspaces)) {
    const names = pathInHome(path, home)?.split("/") ?? []
    if (names.some((part) => part.toLowerCase() === ".git")) return { name, path, owner: "git" } as const
    if (CHOIRS_OWN.has(names[0] ?? "")) return { name, path, owner: "Choir" } as const
  }
  return undefined
}
