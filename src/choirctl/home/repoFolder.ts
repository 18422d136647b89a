/** Where a git repository is to be: one is there already, or the folder is free, or it is somebody else's. */
import { Effect, FileSystem } from "effect"
import { failed } from "#src/choirctl/terminal/failure.ts"

/** Whether a repository has to be made there. Fails for a folder that holds other things. */
export const isFree = Effect.fn("repoFolder.isFree")(function* (repo: string, elsewhere: string) {
  const fs = yield* FileSystem.FileSystem
  const files = (yield* fs.exists(repo)) ? yield* fs.readDirectory(repo) : []
  if (files.length === 0) return true
  if (files.includes(".git") || files.includes("HEAD")) return false
  return yield* failed(
    "NO_REPOSITORY",
    `${repo} holds files and is no git repository`,
    `git -C ${repo} init, or ${elsewhere}`
  )
})
