/** Clones and images of agents that config.json no longer has. Both are made again when they are needed. */
import { lstat, readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"

const isAgent = Schema.is(AgentId)
const DAY_MS = 86_400_000

/** Folders below one of the home's whose agent is not configured, and that nobody has written to for some days. */
export const unusedFolders = (folder: string, { agents }: Config, days: number, now_ms: number) =>
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

/** Whether it is gone. */
export const removeFolder = (path: string) =>
  Effect.promise(() =>
    rm(path, { recursive: true, force: true }).then(
      () => true,
      () => false
    )
  )
