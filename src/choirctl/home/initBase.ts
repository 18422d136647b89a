/** `choirctl agent base init`: the global repository that config.json names, with the files that every image starts from. */
import { join } from "node:path"
import { Effect } from "effect"
import { Config } from "#schema/Config.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { readConfigText } from "./homeFiles.ts"
import { isFree } from "./repoFolder.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { GLOBAL_STARTER } from "./starters.ts"

export interface BaseInitialized {
  /** The folder of the repository: what config.json names, or one to push to it from. */
  readonly repo: string
  readonly created: boolean
  /** What is left to do. */
  readonly next: ReadonlyArray<string>
}

const BRANCH = "main"
const BUILD = "choirctl agent build <agent-id>"

/** A repository that is there is left as it is. One elsewhere is made here, and the commands that push it are answered. */
export const initBase = Effect.fn("initBase")(function* (home: string, kind: "worktree" | "bare") {
  const { global_repo } = yield* decodeFile(Config)(configPath(home), JSON.stringify(yield* readConfigText(home)))
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
