/** Files of a repository's folder that no commit has. */
import { join } from "node:path"
import { Effect, FileSystem } from "effect"
import { runGit } from "#src/shared/git/git.ts"

const STATUS_BYTES_MAX = 16 * 1024 * 1024
const COMPARE_MS_MAX = 600_000
/** Hexadecimal digits of a commit in a repository of SHA-256. */
const SHA256_DIGITS = 64

/**
 * How many files below `folder` differ from `commit`, or lie there when it is empty. A repository made for this question looks at them
 * with the objects of `gitDir`: the configuration, attributes and index of that one, which may name programs to run, are never read.
 */
export const countUncommitted = Effect.fn("uncommittedFiles.count")(function* (
  folder: string,
  gitDir: string,
  commit: string
) {
  const fs = yield* FileSystem.FileSystem
  const own = yield* fs.makeTempDirectoryScoped({ prefix: "choir-compare-" })
  const objects = commit.length === SHA256_DIGITS ? "sha256" : "sha1"
  yield* runGit({ args: ["init", "--quiet", "--bare", "--template=", `--object-format=${objects}`, own] })
  if (commit !== "") {
    yield* fs.writeFileString(join(own, "objects/info/alternates"), `${join(gitDir, "objects")}\n`)
    yield* runGit({ gitDir: own, args: ["update-ref", "--no-deref", "HEAD", commit] })
    yield* runGit({ gitDir: own, args: ["read-tree", commit] })
  }
  // Git would look into a submodule with the configuration of that one.
  const compared = ["--no-renames", "--untracked-files=all", "--ignore-submodules=all"]
  const lines = yield* runGit({
    gitDir: own,
    args: ["--work-tree", folder, "status", "--porcelain=v1", "-z", ...compared],
    env: { GIT_OPTIONAL_LOCKS: "0" },
    outputBytesMax: STATUS_BYTES_MAX,
    timeoutMs: COMPARE_MS_MAX
  })
  return Buffer.from(lines)
    .toString("utf8")
    .split("\0")
    .filter((line) => line !== "").length
}, Effect.scoped)
