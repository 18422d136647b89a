/** Clones and images of agents that config.json no longer has. Both are made again when they are needed. */
import { lstat, readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { DAY_MS } from "#src/shared/days.ts"

const isAgent = Schema.is(AgentId)

/** Folders below one of the home's whose agent is not configured, and that were not written to for some days. */
const unusedFolders = (folder: string, { agents }: Config, days: number, now_ms: number) =>
  Effect.promise(async () => {
    const names = await readdir(folder).catch(() => [])
    const unused: Array<string> = []
    for (const name of names) {
      // The sandbox's copy of Node has the form of an agent's name.
      if (!isAgent(name) || Object.hasOwn(agents, name) || name === "node") continue
      const stat = await lstat(join(folder, name)).catch(() => undefined)
      if (stat?.isDirectory() === true && stat.mtimeMs < now_ms - days * DAY_MS) unused.push(join(folder, name))
    }
    return unused
  })

/** Whether the folder is gone. */
const removeFolder = (path: string) =>
  Effect.promise(() =>
    rm(path, { recursive: true, force: true }).then(
      () => true,
      () => false
    )
  )

/** Removes those that nobody wrote to for some days, or with `dry_run` counts them. */
export const pruneFolders = Effect.fnUntraced(function* (
  kind: "clones" | "images",
  { config, dry_run, now_ms }: { readonly config: Config; readonly dry_run: boolean; readonly now_ms: number }
) {
  const { home } = yield* ConfigStore
  const { unused_days } = config.retention
  const folder = kind === "clones" ? join(home, "repos", "agents") : join(home, "images")
  const unused = unused_days === null ? [] : yield* unusedFolders(folder, config, unused_days, now_ms)
  if (dry_run) return { kind, removed: unused.length }
  const gone = yield* Effect.forEach(unused, removeFolder)
  return { kind, removed: gone.filter(Boolean).length }
})
