/** Files of a local repository that no commit has, so that a build leaves them out without a word. */
import { join } from "node:path"
import { Effect, type FileSystem } from "effect"
import type { CommitId } from "#schema/Image.ts"
import { DOCKERFILES } from "./dockerfile.ts"
import type { gitCalls } from "./Git.ts"
import type { CheckedSource } from "./RepoSource.ts"
import { shownPath } from "./Tree.ts"

const IMAGE_PATHS = ["tools", "skills", "identity", ...Object.values(DOCKERFILES)]

/** The paths of git's answer with `-z`. */
const paths = (output: Uint8Array): ReadonlyArray<string> =>
  Buffer.from(output)
    .toString("utf8")
    .split("\0")
    .filter((path) => path !== "")

/**
 * How many files of the folder differ from a commit that was fetched into `repo`, among those that an image is made of. The folder is
 * compared by choird's own clone with an index of its own: neither the configuration nor the index of the folder's repository, which may
 * name programs to run, is read.
 */
export const countUncommitted = Effect.fnUntraced(
  function* (
    { remote, run }: ReturnType<typeof gitCalls>,
    fs: FileSystem.FileSystem,
    repo: string,
    source: CheckedSource,
    commit: CommitId
  ) {
    // A bare repository has no files of its own, and with another branch checked out they are of no interest to this build.
    if (source.transport !== "file" || !(yield* fs.exists(join(source.url, ".git")))) return 0
    const head = yield* remote(source, { gitDir: repo, args: ["ls-remote", "--quiet", "--", source.url, "HEAD"] })
    if (!Buffer.from(head).toString("latin1").startsWith(`${commit}\t`)) return 0
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "choir-index-" })
    const ask = (...args: ReadonlyArray<string>) =>
      run({
        gitDir: repo,
        args: [`--work-tree=${source.url}`, ...args],
        env: { GIT_INDEX_FILE: join(folder, "index"), GIT_OPTIONAL_LOCKS: "0" }
      })
    yield* ask("read-tree", commit)
    const committed = paths(yield* ask("ls-files", "-z"))
    const compared = ["diff", "--no-ext-diff", "--no-renames", "--ignore-submodules=all", "--name-only", "-z"]
    const gone = paths(yield* ask(...compared, "--diff-filter=D"))
    // What was never checked out was not deleted.
    if (gone.length === committed.length) return 0
    const hasDockerfile = committed.some((path) => Object.values(DOCKERFILES).includes(path))
    const of = hasDockerfile ? ["."] : IMAGE_PATHS
    const changed = paths(yield* ask(...compared, "--", ...of))
    const fresh = paths(yield* ask("ls-files", "--others", "--exclude-standard", "-z", "--", ...of))
    return changed.length + fresh.length
  },
  Effect.scoped,
  // It only informs: a folder that cannot be compared is built as it is committed.
  Effect.catch((error) => Effect.as(Effect.logDebug("a folder could not be compared with its commit", error), 0))
)

/** What an operator reads of it. */
export const uncommittedText = (count: number, url: string): string => {
  const files = count === 1 ? "1 uncommitted file" : `${count} uncommitted files`
  const place = shownPath(url)
  return `${files} in ${place} ${count === 1 ? "is" : "are"} not built: git -C ${place} add --all && git -C ${place} commit -m "…"`
}
