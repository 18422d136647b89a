/** The repositories of a home, the files that they start with, and `choirctl agent base init`. */
import { join } from "node:path"
import { Effect, FileSystem } from "effect"
import { Config } from "#schema/Config.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { readConfigText } from "./homeFiles.ts"

/** The files of a new global repository. */
export const GLOBAL_STARTER = join(packageFolder, "docker", "starter")

/** The files of a new agent's repository. */
export const AGENT_STARTER = join(packageFolder, "docker", "agent-starter")

/** Whether a repository has to be created there. Fails for a folder with other files. */
export const isFree = Effect.fn("repoFolder.isFree")(function* (repo: string, elsewhere: string) {
  const fs = yield* FileSystem.FileSystem
  const files = (yield* fs.exists(repo)) ? yield* fs.readDirectory(repo) : []
  if (files.length === 0) return true
  if (files.includes(".git") || files.includes("HEAD")) return false
  return yield* failed(
    "NO_REPOSITORY",
    `${repo} has files but is not a git repository`,
    `git -C ${repo} init, or ${elsewhere}`
  )
})

export interface BaseInitialized {
  /** The folder that config.json names, or one to push to the remote from. */
  readonly repo: string
  readonly created: boolean
  /** The next commands. */
  readonly next: ReadonlyArray<string>
}

const BRANCH = "main"
const BUILD = "choirctl agent build <agent-id>"

/** Creates the global repository, or leaves an existing one unchanged. For a remote it returns the commands that push to it. */
export const initBase = Effect.fn("initBase")(function* (home: string, kind: "worktree" | "bare") {
  const { global_repo } = yield* decodeFile(Config)(configPath(home), (yield* readConfigText(home)).text)
  const { ref, url } = global_repo
  const isLocal = url.startsWith("/")
  const repo = isLocal ? url : join(home, "sources", "global")
  const created = yield* isFree(repo, "name another folder at global_repo.url")
  if (created) yield* createRepo(repo, GLOBAL_STARTER, kind)
  const renamed = created && isLocal && ref !== BRANCH ? [`git -C ${repo} branch -m ${BRANCH} ${ref}`] : []
  const pushed = isLocal
    ? []
    : [`git -C ${repo} remote add origin ${url}`, `git -C ${repo} push origin ${BRANCH}:refs/heads/${ref}`]
  return { repo, created, next: [...renamed, ...pushed, BUILD] } satisfies BaseInitialized
})
