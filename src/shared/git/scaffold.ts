/** Makes a git repository out of a folder of starter files, for a new home and for a new agent. */
import { basename, dirname, join, resolve } from "node:path"
import { Effect, FileSystem, Option, Schema } from "effect"
import { userFolder } from "#src/shared/files/homeFolder.ts"
import { runGit } from "./git.ts"

export class RepoExists extends Schema.TaggedError<RepoExists>()("RepoExists", { path: Schema.String }) {
  override get message() {
    return `${this.path} already exists and is not empty: choose another folder, or use the repository that is there`
  }
}

const AUTHOR = { NAME: "Choir", EMAIL: "choir@localhost" }
const IDENTITY = Object.fromEntries(
  Object.entries(AUTHOR).flatMap(([key, value]) => [
    [`GIT_AUTHOR_${key}`, value],
    [`GIT_COMMITTER_${key}`, value]
  ])
)

/** Where git looks for who its user is. */
const userConfigs = (): ReadonlyArray<string> => {
  const { GIT_CONFIG_GLOBAL, HOME = userFolder ?? "/", XDG_CONFIG_HOME = join(HOME, ".config") } = process.env
  const own =
    GIT_CONFIG_GLOBAL === undefined
      ? [join(XDG_CONFIG_HOME, "git/config"), join(HOME, ".gitconfig")]
      : [GIT_CONFIG_GLOBAL]
  return ["/etc/gitconfig", ...own]
}

/** Whether one of the files says it. */
const isConfigured = Effect.fnUntraced(function* (key: string) {
  for (const file of userConfigs()) {
    const found = yield* Effect.option(runGit({ args: ["config", "--file", file, "--includes", "--get", key] }))
    if (Option.isSome(found)) return true
  }
  return false
})

/** Lets its owner commit on a machine on which git has never been used: without an identity git refuses to. */
const giveIdentity = Effect.fnUntraced(function* (gitDir: string) {
  for (const [name, value] of Object.entries(AUTHOR)) {
    const key = `user.${name.toLowerCase()}`
    if (!(yield* isConfigured(key))) yield* runGit({ gitDir, args: ["config", key, value] })
  }
})

/**
 * Makes the repository `place` with one commit of the files of `starterFolder` on branch `main`. With a work tree its owner edits the files in place; a
 * bare one is for pushing to. A crash or an error leaves nothing at `place`.
 *
 * @param more further files by their paths, whose folders the starter has; only for a work tree.
 */
export const createRepo = Effect.fn("createRepo")(function* (
  place: string,
  starterFolder: string,
  kind: "worktree" | "bare" = "worktree",
  more: Readonly<Record<string, string>> = {}
) {
  const fs = yield* FileSystem.FileSystem
  const [path, starter] = [resolve(place), resolve(starterFolder)]
  if ((yield* fs.exists(path)) && (yield* fs.readDirectory(path)).length > 0) return yield* new RepoExists({ path })
  yield* fs.makeDirectory(dirname(path), { recursive: true })
  const folder = yield* fs.makeTempDirectoryScoped({ directory: dirname(path), prefix: `.${basename(path)}.new-` })
  const fresh = join(folder, "repo")
  const gitDir = kind === "bare" ? fresh : join(fresh, ".git")
  const workTree = kind === "bare" ? starter : fresh
  if (kind === "worktree") {
    yield* fs.copy(starter, fresh)
    for (const [file, text] of Object.entries(more)) yield* fs.writeFileString(join(fresh, file), text)
  }
  const bare = kind === "bare" ? ["--bare"] : []
  yield* runGit({ args: ["init", "--quiet", ...bare, "--template=", "--initial-branch=main", fresh] })
  yield* runGit({ gitDir, args: ["--work-tree", workTree, "add", "--all", "--force", "."] })
  yield* runGit({ gitDir, args: ["--work-tree", workTree, "commit", "--quiet", "--message=Start"], env: IDENTITY })
  if (kind === "worktree") yield* giveIdentity(gitDir)
  yield* fs.rename(fresh, path)
}, Effect.scoped)
