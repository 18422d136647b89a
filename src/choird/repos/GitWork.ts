/**
 * The commits that choird writes with git: one on top of another, and a push of one to one branch. It works in bare repositories
 * that it makes and throws away, without a work tree, hook, filter or configuration of anybody's (D23).
 */
import { Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { CommitId } from "#schema/Image.ts"
import { type GitCall, GitFailed, type GitMissing, runGit } from "#src/shared/git/git.ts"
import { asArguments, SAFE_SETTINGS } from "#src/shared/git/safeGit.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { Git } from "./Git.ts"
import { callRemote, fetchArgs, type FetchFailed, type RefNotFound } from "./gitCalls.ts"
import type { CheckedSource } from "./RepoSource.ts"
import { type HeldFile, shownPath } from "./Tree.ts"

/** Commits of a proposed branch that are not in the configured ref yet. */
export const PROPOSAL_COMMITS_MAX = 50

/** A ref that is a tag or a commit, to which nothing can be added. */
export class NotABranch extends Schema.TaggedError<NotABranch>()("NotABranch", {
  url: Schema.String,
  ref: Schema.String
}) {
  override get message() {
    return `${this.url} has no branch ${this.ref} that could be pushed to: name a branch as repo.ref in config.json`
  }
}

/** The author of a commit. */
export interface Identity {
  readonly name: string
  readonly email: string
}

/** Equal drafts make the same commit, whenever they are made. */
export interface CommitDraft {
  readonly parent: CommitId
  readonly files: ReadonlyArray<HeldFile>
  /** Paths that the commit no longer has; they go before its files come. */
  readonly removed?: ReadonlyArray<string>
  readonly message: string
  readonly identity: Identity
  /** ISO text. */
  readonly date: string
}

type Local = GitMissing | GitFailed
type Remote = GitMissing | FetchFailed | RefNotFound

export class GitWork extends Context.Service<
  GitWork,
  {
    /** Creates an empty bare repository and removes anything else at `place`. */
    begin(place: string): Effect.Effect<void, Local>
    /** The newest commit of the source's branch at the other side. */
    head(repo: string, source: CheckedSource): Effect.Effect<CommitId, Remote | NotABranch>
    /** Fetches the branch with at most PROPOSAL_COMMITS_MAX + 1 commits of history, and answers its newest one. */
    branch(repo: string, source: CheckedSource): Effect.Effect<CommitId, Remote | NotABranch | GitFailed>
    /** The commits of `commit` that `base` lacks, a line each; nothing when `base` is not among its fetched ancestors. */
    ahead(repo: string, base: CommitId, commit: CommitId): Effect.Effect<Option.Option<ReadonlyArray<string>>, Local>
    /** The tree of a commit. */
    tree(repo: string, commit: CommitId): Effect.Effect<CommitId, Local>
    /** Commits the parent's files with these in their places. */
    commit(repo: string, draft: CommitDraft): Effect.Effect<CommitId, Local>
    /** Moves the source's branch to the commit; fails unless that is a fast-forward. A work tree of the other side follows. */
    push(repo: string, source: CheckedSource, commit: CommitId): Effect.Effect<void, GitMissing | FetchFailed>
  }
>()("choir/choird/GitWork") {
  static readonly layer = Layer.effect(
    GitWork,
    Effect.suspend(() => make())
  )
}

/** The other side of a push to a folder of this host is a git of ours, too, whatever that repository's configuration says. */
const RECEIVE_PACK = [
  "git",
  ...asArguments([
    ...SAFE_SETTINGS,
    ["receive.denyCurrentBranch", "updateInstead"],
    ["receive.fsckObjects", "true"],
    ["receive.autogc", "false"]
  ]),
  "receive-pack"
]
  .map(shellQuoted)
  .join(" ")

const BRANCH_REF = "refs/choir/branch"

/** The object that git names in its answer. */
const oid = Effect.fnUntraced(function* (command: string, output: Uint8Array) {
  const id = Schema.decodeOption(CommitId)(Buffer.from(output).toString("latin1").trim())
  if (Option.isSome(id)) return id.value
  return yield* new GitFailed({ command, kind: "output", exit_code: 0, reason: "unexpected output from git" })
})

/** The commits between two, a line each, where one is an ancestor of the other. */
const listAhead = Effect.fn("GitWork.ahead")(function* (repo: string, base: CommitId, commit: CommitId) {
  const isAncestor = yield* runGit({ gitDir: repo, args: ["merge-base", "--is-ancestor", base, commit] }).pipe(
    Effect.as(true),
    Effect.catchIf(
      (error) => error._tag === "GitFailed" && error.kind === "exit",
      () => Effect.succeed(false)
    )
  )
  if (!isAncestor) return Option.none()
  const args = ["log", "--no-decorate", "--no-show-signature", "--format=%H %an: %s", `${base}..${commit}`, "--"]
  const listed = Buffer.from(yield* runGit({ gitDir: repo, args })).toString("utf8")
  return Option.some(
    listed
      .split("\n")
      .filter((line) => line !== "")
      .map(shownPath)
  )
})

/** Makes a commit with an index of its own, which no work tree needs. */
const makeCommit = Effect.fn("GitWork.commit")(function* (
  repo: string,
  { date, files, identity, message, parent, removed = [] }: CommitDraft
) {
  const env = {
    GIT_INDEX_FILE: `${repo}/choir-index`,
    GIT_AUTHOR_NAME: identity.name,
    GIT_AUTHOR_EMAIL: identity.email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: identity.name,
    GIT_COMMITTER_EMAIL: identity.email,
    GIT_COMMITTER_DATE: date
  }
  const call = (args: ReadonlyArray<string>, stdin: string | Uint8Array = "") =>
    runGit({ gitDir: repo, args, env, stdin: Buffer.from(stdin) })
  yield* call(["read-tree", parent])
  const entries = yield* Effect.forEach(
    files,
    Effect.fnUntraced(function* ({ bytes, executable, path }) {
      const id = yield* oid("hash-object", yield* call(["hash-object", "-w", "--stdin"], bytes))
      return `${executable ? "100755" : "100644"} ${id}\t${path}\0`
    })
  )
  const gone = removed.map((path) => `0 ${parent}\t${path}\0`)
  yield* call(["update-index", "-z", "--index-info"], [...gone, ...entries].join(""))
  const tree = yield* oid("write-tree", yield* call(["write-tree"]))
  return yield* oid("commit-tree", yield* call(["commit-tree", tree, "-p", parent, "-F", "-"], message))
})

const make = Effect.fnUntraced(function* () {
  const git = yield* Git
  const fs = yield* FileSystem.FileSystem
  const context = Context.make(
    ChildProcessSpawner.ChildProcessSpawner,
    yield* ChildProcessSpawner.ChildProcessSpawner
  ).pipe(Context.add(FileSystem.FileSystem, fs))
  const provide = Effect.provideContext(context)
  const run = (call: GitCall) => provide(runGit(call))
  const remote = (source: CheckedSource, call: GitCall) => provide(callRemote(source, call))

  const head = Effect.fn("GitWork.head")(function* (repo: string, source: CheckedSource) {
    const { commit, name } = yield* git.lookup(repo, source)
    const id = Schema.decodeOption(CommitId)(commit)
    return name === `refs/heads/${source.ref}` && Option.isSome(id) ? id.value : yield* new NotABranch(source)
  })

  return GitWork.of({
    begin: Effect.fn("GitWork.begin")(function* (place) {
      yield* fs
        .remove(place, { recursive: true, force: true })
        .pipe(
          Effect.mapError(
            ({ message }) => new GitFailed({ command: "init", kind: "process", exit_code: null, reason: message })
          )
        )
      yield* git.init(place)
    }),
    head,
    branch: Effect.fn("GitWork.branch")(function* (repo, source) {
      yield* head(repo, source)
      const args = [...fetchArgs(PROPOSAL_COMMITS_MAX + 1), "--", source.url, `+refs/heads/${source.ref}:${BRANCH_REF}`]
      yield* remote(source, { gitDir: repo, args })
      return yield* oid("rev-parse", yield* run({ gitDir: repo, args: ["rev-parse", "--verify", BRANCH_REF] }))
    }),
    ahead: (repo, base, commit) => provide(listAhead(repo, base, commit)),
    tree: Effect.fn("GitWork.tree")(function* (repo, commit) {
      return yield* oid("rev-parse", yield* run({ gitDir: repo, args: ["rev-parse", "--verify", `${commit}^{tree}`] }))
    }),
    commit: (repo, draft) => provide(makeCommit(repo, draft)),
    push: Effect.fn("GitWork.push")(function* (repo, source, commit) {
      const local = source.transport === "file" ? [`--receive-pack=${RECEIVE_PACK}`] : []
      const args = ["push", "--quiet", "--no-verify", "--recurse-submodules=no", ...local, "--", source.url]
      yield* remote(source, { gitDir: repo, args: [...args, `${commit}:refs/heads/${source.ref}`] })
    })
  })
})
