/** The repositories that choird reads with git: one commit fetched into a bare repository, and its files (D23). */
import { join } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { CommitId } from "#schema/Image.ts"
import { type GitCall, GitFailed, type GitMissing, readGit, runGit } from "#src/shared/git/git.ts"
import { readBlobs, type Wanted } from "./Blobs.ts"
import { cacheRef, type CheckedSource, isCommit } from "./RepoSource.ts"
import { DOCKERFILES } from "./dockerfile.ts"
import { callRemote, fetchArgs, type FetchFailed, RefNotFound } from "./gitCalls.ts"
import {
  type BadRepository,
  badRepository,
  parseTree,
  REPO_FILES_MAX,
  REPO_PATH_BYTES_MAX,
  type RepoFile,
  shownPath,
  type TreeEntry,
  treeProblems
} from "./Tree.ts"

/** Reading a whole repository out of git, as large as one may be, on a busy machine. */
const GIT_READ_TIMEOUT_MS = 120_000

/** The full name of a ref at the other side, and its commit. */
export interface RemoteRef {
  readonly name: string
  readonly commit: string
}

export class Git extends Context.Service<
  Git,
  {
    /** Makes an empty bare repository at `path`, without templates and so without hooks. */
    init(path: string): Effect.Effect<void, GitMissing | GitFailed>
    /**
     * Asks the other side for the commit of the source's ref, a branch before a tag; `HEAD` is its default branch. A commit id is taken as
     * it is.
     */
    lookup(repo: string, source: CheckedSource): Effect.Effect<RemoteRef, GitMissing | FetchFailed | RefNotFound>
    /** Fetches that one commit without its history, checks its objects, and keeps it under the source's cache name. */
    fetch(
      repo: string,
      source: CheckedSource,
      remote: RemoteRef
    ): Effect.Effect<void, GitMissing | FetchFailed | RefNotFound>
    /** The commit that was fetched for the source, or `undefined` without one. */
    cached(repo: string, source: CheckedSource): Effect.Effect<CommitId | undefined, GitMissing>
    /** The number of files in a local source's folder that its newest commit, fetched into `repo`, does not have. */
    uncommitted(repo: string, source: CheckedSource, commit: CommitId): Effect.Effect<number>
    /** The entries of a commit's tree, checked without reading one of its files; `label` names the repository in problems (R75). */
    tree(
      repo: string,
      commit: CommitId,
      label: string
    ): Effect.Effect<ReadonlyArray<TreeEntry>, GitMissing | GitFailed | BadRepository>
    /** The paths of all files of a commit. Nothing about them is checked: they are for a person to choose from. */
    paths(repo: string, commit: CommitId): Effect.Effect<ReadonlyArray<string>, GitMissing | GitFailed>
    /** The tree of a folder of a commit, whose files `files` reads as it does a commit's. */
    subtree(repo: string, commit: CommitId, folder: string): Effect.Effect<CommitId | undefined, GitMissing>
    /** All files of a commit, after its tree was checked. `wanted` decides which contents are in memory, and where the others go. */
    files(
      repo: string,
      commit: CommitId,
      label: string,
      wanted?: Wanted
    ): Effect.Effect<ReadonlyArray<RepoFile>, GitMissing | GitFailed | BadRepository>
  }
>()("choir/choird/Git") {
  static readonly layer = Layer.effect(
    Git,
    Effect.gen(function* () {
      const provide = Effect.provideContext(
        Context.pick(
          ChildProcessSpawner.ChildProcessSpawner,
          FileSystem.FileSystem
        )(yield* Effect.context<ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem>())
      )
      const run = (call: GitCall) => provide(runGit(call))
      const remote = (source: CheckedSource, call: GitCall) => provide(callRemote(source, call))
      return Git.of({
        init: Effect.fn("Git.init")((path) =>
          Effect.asVoid(run({ args: ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", path] }))
        ),
        lookup: Effect.fn("Git.lookup")(function* (repo, source) {
          if (isCommit(source.ref)) return { name: source.ref, commit: source.ref }
          const names = source.ref === "HEAD" ? ["HEAD"] : [`refs/heads/${source.ref}`, `refs/tags/${source.ref}`]
          const args = ["ls-remote", "--quiet", "--", source.url, ...names, `refs/tags/${source.ref}^{}`]
          const found = parseRefs(yield* remote(source, { gitDir: repo, args }))
          const name = names.find((name) => found.has(name))
          if (name === undefined) return yield* new RefNotFound(source)
          return { name, commit: found.get(`${name}^{}`) ?? found.get(name) ?? "" }
        }),
        fetch: Effect.fn("Git.fetch")((repo, source, { name }) =>
          Effect.asVoid(
            remote(source, {
              gitDir: repo,
              args: [...fetchArgs(1), "--", source.url, `+${name}:${cacheRef(source)}`]
            })
          ).pipe(
            // Only a commit id reaches this: of a branch or tag the other side has just said that it is there.
            Effect.catchIf(
              (error) => error._tag === "FetchFailed" && NO_SUCH_REF.test(error.reason),
              () => Effect.fail(new RefNotFound(source))
            )
          )
        ),
        cached: Effect.fn("Git.cached")((repo, source) =>
          run({ gitDir: repo, args: ["rev-parse", "--verify", "--quiet", `${cacheRef(source)}^{commit}`] }).pipe(
            Effect.map(objectId),
            Effect.catchTag("GitFailed", () => Effect.undefined)
          )
        ),
        uncommitted: Effect.fn("Git.uncommitted")((repo, source, commit) =>
          provide(countUncommitted(repo, source, commit))
        ),
        tree: (gitDir, commit, label) => provide(readTree(gitDir, commit, label)),
        paths: Effect.fn("Git.paths")(function* (gitDir, commit) {
          const args = ["ls-tree", "-r", "-z", "--full-tree", "--name-only", commit]
          return paths(yield* run({ gitDir, args, outputBytesMax: LISTING_BYTES_MAX }))
        }),
        subtree: Effect.fn("Git.subtree")((gitDir, commit, folder) =>
          run({ gitDir, args: ["rev-parse", "--verify", "--quiet", `${commit}:${folder}`] }).pipe(
            Effect.map(objectId),
            Effect.catchTag("GitFailed", () => Effect.undefined)
          )
        ),
        files: (gitDir, commit, label, wanted) => provide(readFiles(gitDir, commit, label, wanted))
      })
    })
  )
}

const NO_SUCH_REF = /not our ref|couldn't find remote ref|no such remote ref/iu
const ENTRY_HEADER_BYTES_MAX = 128
const LISTING_BYTES_MAX = (REPO_FILES_MAX + 1) * (REPO_PATH_BYTES_MAX + ENTRY_HEADER_BYTES_MAX)

const unreadable = (command: string) =>
  new GitFailed({ command, kind: "output", exit_code: 0, reason: "unexpected output from git" })

const objectId = (output: Uint8Array): CommitId | undefined =>
  Option.getOrUndefined(Schema.decodeOption(CommitId)(Buffer.from(output).toString("latin1").trim()))

const parseRefs = (output: Uint8Array) =>
  new Map(
    Buffer.from(output)
      .toString("utf8")
      .split("\n")
      .flatMap((line) => {
        const [commit = "", name = ""] = line.split("\t")
        return isCommit(commit) ? [[name, commit] as const] : []
      })
  )

/** The checked entries of a commit's tree. */
const readTree = Effect.fn("Git.tree")(function* (gitDir: string, commit: CommitId, label: string) {
  const listing = yield* runGit({
    gitDir,
    args: ["ls-tree", "-r", "-l", "-z", "--full-tree", commit],
    outputBytesMax: LISTING_BYTES_MAX
  }).pipe(
    Effect.catchIf(
      (error) => error._tag === "GitFailed" && error.kind === "output",
      () => Effect.fail(badRepository([{ repo: label, path: "(all files)", reason: "the tree is too large" }]))
    )
  )
  const entries = parseTree(listing)
  if (entries === undefined) return yield* unreadable("ls-tree")
  const problems = treeProblems(label, entries)
  return problems.length > 0 ? yield* badRepository(problems) : entries
})
/** The files of a commit, their contents in memory or where they are wanted. */
const readFiles = Effect.fn("Git.files")(function* (
  gitDir: string,
  commit: CommitId,
  label: string,
  wanted: Wanted = {}
) {
  const fs = yield* FileSystem.FileSystem
  const entries = yield* readTree(gitDir, commit, label)
  const ids = [...new Set(entries.map(({ id }) => id))]
  const call = {
    gitDir,
    args: ["cat-file", "--batch"],
    timeoutMs: GIT_READ_TIMEOUT_MS,
    stdin: Buffer.from(ids.map((id) => `${id}\n`).join(""))
  }
  const blobs = yield* Effect.catchTag(
    readGit(call, (output) => Effect.provideService(readBlobs(output, entries, wanted), FileSystem.FileSystem, fs)),
    "UnreadableBlobs",
    () => Effect.fail(unreadable("cat-file"))
  )
  return yield* Effect.forEach(entries, ({ id, path, mode }) => {
    const bytes = blobs.get(id)
    return bytes === undefined
      ? Effect.fail(unreadable("cat-file"))
      : Effect.succeed({ path, executable: mode === "100755", bytes })
  })
})

const IMAGE_PATHS = ["tools", "skills", "identity", ...Object.values(DOCKERFILES)]

/** The paths of git's answer with `-z`. */
const paths = (output: Uint8Array): ReadonlyArray<string> =>
  Buffer.from(output)
    .toString("utf8")
    .split("\0")
    .filter((path) => path !== "")

/**
 * The number of files in the folder that differ from a commit that was fetched into `repo`, among those that an image is made of. The
 * comparison uses choird's own clone and an index of its own: neither the configuration nor the index of the folder's repository, which
 * may name programs to run, is read.
 */
const countUncommitted = Effect.fnUntraced(
  function* (repo: string, source: CheckedSource, commit: CommitId) {
    const fs = yield* FileSystem.FileSystem
    // A bare repository has no files of its own, and with another branch checked out they are of no interest to this build.
    if (source.transport !== "file" || !(yield* fs.exists(join(source.url, ".git")))) return 0
    const head = yield* callRemote(source, { gitDir: repo, args: ["ls-remote", "--quiet", "--", source.url, "HEAD"] })
    if (!Buffer.from(head).toString("latin1").startsWith(`${commit}\t`)) return 0
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "choir-index-" })
    const ask = (...args: ReadonlyArray<string>) =>
      runGit({
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

/** The sentence for an operator about these files. */
export const uncommittedText = (count: number, url: string): string => {
  const files = count === 1 ? "1 uncommitted file" : `${count} uncommitted files`
  const place = shownPath(url)
  return `${files} in ${place} ${count === 1 ? "is" : "are"} not built: git -C ${place} add --all && git -C ${place} commit -m "…"`
}
