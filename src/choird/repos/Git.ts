/** What choird does with git: an empty bare repository, one commit into it, and the files of that commit out of it (D23). */
import { Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { CommitId } from "#schema/Image.ts"
import {
  GIT_WRITTEN_BYTES_MAX,
  type GitCall,
  GitFailed,
  type GitMissing,
  readGit,
  runGit
} from "#src/shared/git/git.ts"
import { readBlobs, type Wanted } from "./Blobs.ts"
import { cacheRef, type CheckedSource, isCommit } from "./RepoSource.ts"
import { countUncommitted } from "./uncommitted.ts"
import {
  type BadRepository,
  badRepository,
  parseTree,
  REPO_FILES_MAX,
  REPO_PATH_BYTES_MAX,
  type RepoFile,
  type TreeEntry,
  treeProblems
} from "./Tree.ts"

/** Reading a whole repository out of git, as large as one may be, on a busy machine. */
const GIT_READ_TIMEOUT_MS = 120_000

/** A repository that could not be fetched. `url` never holds credentials: they are refused in config.json. */
export class FetchFailed extends Schema.TaggedError<FetchFailed>()("FetchFailed", {
  url: Schema.String,
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return `cannot fetch ${this.url}: ${this.reason}. ${this.hint}`
  }
}

/** A repository that answers but has no such branch, tag or commit. */
export class RefNotFound extends Schema.TaggedError<RefNotFound>()("RefNotFound", {
  url: Schema.String,
  ref: Schema.String
}) {
  override get message() {
    return `${this.url} has no branch, tag or commit ${this.ref}: push it, or correct the ref in config.json`
  }
}

/** What the other side calls a ref, and the commit it stands for now. */
export interface RemoteRef {
  readonly name: string
  readonly commit: string
}

/** How git is called: on a repository of choird's own, and with the one transport that leads to the other side. */
export const gitCalls = (spawner: ChildProcessSpawner.ChildProcessSpawner["Service"], fs: FileSystem.FileSystem) => {
  const run = (call: GitCall) => Effect.provideService(runGit(call), ChildProcessSpawner.ChildProcessSpawner, spawner)
  const asWhom = Effect.fnUntraced(function* ({ credential }: CheckedSource) {
    if (credential === undefined) return {}
    if (credential.type === "password" || credential.known_hosts === undefined) return { credential }
    const knownHosts = yield* fs.makeTempFileScoped({ prefix: "choir-hosts-" })
    yield* fs.writeFileString(knownHosts, `${credential.known_hosts.join("\n")}\n`)
    return { credential, knownHosts }
  })
  const remote = (source: CheckedSource, call: GitCall) =>
    Effect.scoped(
      Effect.gen(function* () {
        if (source.transport !== "file")
          return yield* run({ ...call, transport: source.transport, ...(yield* asWhom(source)) })
        const globalConfig = yield* fs.makeTempFileScoped({ prefix: "choir-git-" })
        yield* fs.writeFileString(globalConfig, safeFolder(source.url))
        return yield* run({ ...call, transport: "file", globalConfig })
      })
    ).pipe(
      Effect.catchTags({
        GitFailed: (error) => Effect.fail(fetchFailed(source, error.reason)),
        PlatformError: (error) => Effect.fail(fetchFailed(source, error.message))
      })
    )
  return { run, remote }
}

export class Git extends Context.Service<
  Git,
  {
    /** Makes an empty bare repository at `path`, without templates and so without hooks. */
    init(path: string): Effect.Effect<void, GitMissing | GitFailed>
    /** Asks the other side for the commit of the source's ref, a branch before a tag. A commit id is taken as it is. */
    lookup(repo: string, source: CheckedSource): Effect.Effect<RemoteRef, GitMissing | FetchFailed | RefNotFound>
    /** Fetches that one commit without its history, checks its objects, and keeps it under the source's cache name. */
    fetch(
      repo: string,
      source: CheckedSource,
      remote: RemoteRef
    ): Effect.Effect<void, GitMissing | FetchFailed | RefNotFound>
    /** The commit that was fetched for the source, or `undefined` when there is none. */
    cached(repo: string, source: CheckedSource): Effect.Effect<CommitId | undefined, GitMissing>
    /** How many files of a local source's folder are not in that commit, its newest one, which was fetched into `repo`. */
    uncommitted(repo: string, source: CheckedSource, commit: CommitId): Effect.Effect<number>
    /** The entries of a commit's tree, checked without reading one of its files; `label` names the repository in problems (R75). */
    tree(
      repo: string,
      commit: CommitId,
      label: string
    ): Effect.Effect<ReadonlyArray<TreeEntry>, GitMissing | GitFailed | BadRepository>
    /** All files of a commit, after its tree was checked. What is in memory, and what becomes of the rest, `wanted` says. */
    files(
      repo: string,
      commit: CommitId,
      label: string,
      wanted?: Wanted
    ): Effect.Effect<ReadonlyArray<RepoFile>, GitMissing | GitFailed | BadRepository>
  }
>()("choir/choird/repos/Git") {
  static readonly layer = Layer.effect(
    Git,
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      const fs = yield* FileSystem.FileSystem
      const calls = gitCalls(spawner, fs)
      const { remote, run } = calls
      const tree = Effect.fn("Git.tree")(function* (gitDir: string, commit: CommitId, label: string) {
        const listing = yield* run({
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
      return Git.of({
        init: Effect.fn("Git.init")((path) =>
          Effect.asVoid(run({ args: ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", path] }))
        ),
        lookup: Effect.fn("Git.lookup")(function* (repo, source) {
          if (isCommit(source.ref)) return { name: source.ref, commit: source.ref }
          const names = [`refs/heads/${source.ref}`, `refs/tags/${source.ref}`]
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
            Effect.map((out) =>
              Option.getOrUndefined(Schema.decodeOption(CommitId)(Buffer.from(out).toString("latin1").trim()))
            ),
            Effect.catchTag("GitFailed", () => Effect.undefined)
          )
        ),
        uncommitted: Effect.fn("Git.uncommitted")((repo, source, commit) =>
          countUncommitted(calls, fs, repo, source, commit)
        ),
        tree,
        files: Effect.fn("Git.files")(function* (gitDir, commit, label, wanted = {}) {
          const entries = yield* tree(gitDir, commit, label)
          const ids = [...new Set(entries.map(({ id }) => id))]
          const call = {
            gitDir,
            args: ["cat-file", "--batch"],
            timeoutMs: GIT_READ_TIMEOUT_MS,
            stdin: Buffer.from(ids.map((id) => `${id}\n`).join(""))
          }
          const blobs = yield* readGit(call, (output) => readBlobs(fs, output, entries, wanted)).pipe(
            Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, spawner),
            Effect.catchTag("UnreadableBlobs", () => Effect.fail(unreadable("cat-file")))
          )
          return yield* Effect.forEach(entries, ({ id, path, mode }) => {
            const bytes = blobs.get(id)
            return bytes === undefined
              ? Effect.fail(unreadable("cat-file"))
              : Effect.succeed({ path, executable: mode === "100755", bytes })
          })
        })
      })
    })
  )
}

/** A fetch that brings nothing along but the objects of the refs that it names. */
export const fetchArgs = (depth: number): ReadonlyArray<string> => [
  "fetch",
  "--quiet",
  `--depth=${depth}`,
  "--no-tags",
  "--no-recurse-submodules",
  "--no-write-fetch-head",
  "--no-auto-maintenance"
]
const NO_SUCH_REF = /not our ref|couldn't find remote ref|no such remote ref/iu
const ENTRY_HEADER_BYTES_MAX = 128
const LISTING_BYTES_MAX = (REPO_FILES_MAX + 1) * (REPO_PATH_BYTES_MAX + ENTRY_HEADER_BYTES_MAX)

const unreadable = (command: string) =>
  new GitFailed({ command, kind: "output", exit_code: 0, reason: "the answer has an unknown form" })

/** `git-upload-pack` takes this setting from a file only. A repository may be the folder itself or its `.git`. */
const safeFolder = (path: string) => {
  const quoted = (text: string) => `"${text.replaceAll(/["\\]/gu, String.raw`\$&`)}"`
  const folder = path.replace(/\/+$/u, "")
  return `[safe]\n\tdirectory = ${quoted(folder)}\n\tdirectory = ${quoted(`${folder}/.git`)}\n`
}

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

/** The likely cause, told from git's own words, and what to do about it. */
const HINTS: ReadonlyArray<readonly [RegExp, string]> = [
  [/no end after/iu, "The other side is slow or silent: check the network and try again"],
  [
    /host key verification/iu,
    "Name the host's key in known_hosts of the agent's git identity, or connect once by hand as the user that runs choird"
  ],
  [
    /permission denied|authentication|could not read username/iu,
    "Check the secret and the remotes of the agent's git identity, or the key of the user that runs choird, and its rights"
  ],
  [/resolve host|connect|network|timed out/iu, "Check the network and the host name"],
  [/dubious ownership/iu, "Give the folder to the user that runs choird"],
  [
    /fsck|bad object|hasDot|zero-padded/iu,
    "The repository holds objects that git itself calls broken: repair it with git fsck"
  ],
  [
    /index-pack/iu,
    `It may be larger, with its history, than the ${GIT_WRITTEN_BYTES_MAX / 1024 / 1024} MiB that are fetched at most, or the disk is full: take large files out of its history`
  ]
]

const fetchFailed = ({ url }: CheckedSource, reason: string) =>
  new FetchFailed({
    url,
    reason,
    hint: HINTS.find(([words]) => words.test(reason))?.[1] ?? "Check the url and that it is a git repository"
  })
