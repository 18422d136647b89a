/** The clones of the global and the agents' repositories under `<home>/repos`, replaced for each new commit. */
import { basename, dirname, join } from "node:path"
import { Context, Effect, FileSystem, Layer, type PlatformError, Result, Schema } from "effect"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { CommitId } from "#schema/Image.ts"
import type { GitFailed, GitMissing } from "#src/shared/git/git.ts"
import { makeKeyedLock } from "#src/choird/config/keyedLock.ts"
import type { Wanted } from "./Blobs.ts"
import { Git, uncommittedText } from "./Git.ts"
import { type FetchFailed, RefNotFound } from "./gitCalls.ts"
import { RepoAccess } from "./RepoAccess.ts"
import { checkSource, type CheckedSource, type InvalidRepoSource, type RepoSource } from "./RepoSource.ts"
import type { BadRepository, RepoFile } from "./Tree.ts"

/** A clone that cannot be kept on disk. */
export class RepoCacheFailed extends Schema.TaggedError<RepoCacheFailed>()("RepoCacheFailed", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `cannot keep a clone at ${this.path}: ${this.reason}. Check the folder's owner and the space on its disk`
  }
}

/** The files of one commit. `stale` means that the fetch failed and an earlier clone was read, for the reason in `warning` (D42). */
export interface Snapshot {
  readonly commit: CommitId
  readonly files: ReadonlyArray<RepoFile>
  readonly stale: boolean
  readonly warning?: string
}

export type RepoError =
  | InvalidRepoSource
  | GitMissing
  | GitFailed
  | FetchFailed
  | RefNotFound
  | BadRepository
  | RepoCacheFailed

/** The owner of a repository; an agent's is fetched as `git_identity`, where that reaches it, else as the agent's default one. */
export type RepoOwner =
  | { readonly global: true }
  | { readonly agent_id: AgentId; readonly git_identity?: ResourceName | undefined }

/** The repository's name in what people read. */
export const repoLabel = (owner: RepoOwner): string =>
  "global" in owner ? "global repository" : `repository of ${owner.agent_id}`

/** The options of a reading. */
export interface Reading extends Wanted {
  /** Used instead of the configuration that runs. */
  readonly access?: RepoAccess
}

export class Repos extends Context.Service<
  Repos,
  {
    /**
     * Fetches the source's ref and reads its tree. An unreachable remote with a clone of the same url and ref is a stale snapshot,
     * without one an error; a ref that the remote no longer has, and a tree that is refused, are errors in any case (D23, D42).
     */
    snapshot(owner: RepoOwner, source: RepoSource, reading?: Reading): Effect.Effect<Snapshot, RepoError>
    /** Sentences about what a build of a snapshot leaves out: uncommitted files of a local repository. */
    uncommitted(owner: RepoOwner, source: RepoSource, snapshot: Snapshot): Effect.Effect<ReadonlyArray<string>>
    /** The files of a commit that was read before: from the clone, or fetched by its id beside it when that has moved on. */
    at(
      owner: RepoOwner,
      source: RepoSource,
      commit: CommitId,
      wanted?: Wanted
    ): Effect.Effect<ReadonlyArray<RepoFile>, RepoError>
  }
>()("choir/choird/Repos") {
  /** @param home the folder of choird, which alone writes below its `repos`. */
  static readonly layer = (home: string) =>
    Layer.effect(
      Repos,
      Effect.suspend(() => make(home))
    )
}

/** One reading of a repository whose clone is at `place`. */
interface Read {
  readonly place: string
  /** The repository's name in problems. */
  readonly label: string
  readonly source: CheckedSource
  readonly wanted: Wanted
}

// Agents' ids hold no dot, so that neither name is another agent's clone.
const aside = (place: string) => join(dirname(place), `.${basename(place)}.old`)
const fresh = (place: string) => `.${basename(place)}.new-`

/** Brings the clone back that a crash between two renames left aside, and removes unfinished clones. */
const recover = Effect.fnUntraced(function* ({ place }: Read) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(dirname(place), { recursive: true, mode: 0o700 })
  if (!(yield* fs.exists(place)) && (yield* fs.exists(aside(place)))) yield* fs.rename(aside(place), place)
  const left = (yield* fs.readDirectory(dirname(place))).filter((name) => name.startsWith(fresh(place)))
  for (const name of [basename(aside(place)), ...left]) {
    yield* fs.remove(join(dirname(place), name), { recursive: true, force: true })
  }
})

const replace = Effect.fnUntraced(function* (place: string, clone: string) {
  const fs = yield* FileSystem.FileSystem
  if (yield* fs.exists(place)) yield* fs.rename(place, aside(place))
  yield* fs.rename(clone, place)
  yield* fs.remove(aside(place), { recursive: true, force: true })
}, Effect.uninterruptible)

/** Empties the folder for contents, which a failed reading may have begun to fill. */
const emptied = Effect.fnUntraced(function* ({ folder }: Wanted) {
  if (folder === undefined) return
  const fs = yield* FileSystem.FileSystem
  yield* fs.remove(folder, { recursive: true, force: true })
  yield* fs.makeDirectory(folder, { mode: 0o700 })
})

/** An empty repository beside a clone, for as long as the scope lives. */
const freshClone = Effect.fnUntraced(function* ({ place }: Read) {
  const fs = yield* FileSystem.FileSystem
  const git = yield* Git
  const folder = yield* fs.makeTempDirectoryScoped({ directory: dirname(place), prefix: fresh(place) })
  const clone = join(folder, "clone")
  yield* git.init(clone)
  return clone
})

/** The newest files, which are read and checked before their clone replaces the `known` one. */
const update = Effect.fnUntraced(function* (read: Read, known: CommitId | undefined) {
  const { label, place, source, wanted } = read
  const git = yield* Git
  const clone = yield* freshClone(read)
  const remote = yield* git.lookup(clone, source)
  if (known !== undefined && remote.commit === known) {
    const files = yield* Effect.option(git.files(place, known, label, wanted).pipe(Effect.tapError(Effect.logWarning)))
    if (files._tag === "Some") return { commit: known, files: files.value, stale: false }
    yield* emptied(wanted)
  }
  yield* git.fetch(clone, source, remote)
  const commit = yield* git.cached(clone, source)
  if (commit === undefined) return yield* new RefNotFound(source)
  const files = yield* git.files(clone, commit, label, wanted)
  yield* replace(place, clone)
  return { commit, files, stale: false }
}, Effect.scoped)

/** The files of the clone that an earlier fetch left, where there is one. */
const earlier = Effect.fnUntraced(function* (
  { label, place, wanted }: Read,
  known: CommitId | undefined,
  error: FetchFailed
) {
  if (known === undefined) return yield* error
  const git = yield* Git
  const warning = `${label}: ${error.message}. The clone of an earlier fetch is used, commit ${known}`
  return { commit: known, files: yield* git.files(place, known, label, wanted), stale: true, warning }
})

/** The files of a commit that the clone does not hold. */
const fetched = Effect.fnUntraced(function* (read: Read, commit: CommitId) {
  const { label, source, wanted } = read
  const git = yield* Git
  const clone = yield* freshClone(read)
  yield* git.fetch(clone, source, { name: commit, commit })
  yield* emptied(wanted)
  return yield* git.files(clone, commit, label, wanted)
}, Effect.scoped)

const make = Effect.fnUntraced(function* (home: string) {
  const git = yield* Git
  const running = yield* RepoAccess
  const context = Context.make(Git, git).pipe(Context.add(FileSystem.FileSystem, yield* FileSystem.FileSystem))
  const locked = yield* makeKeyedLock

  const placeOf = (owner: RepoOwner) =>
    "global" in owner ? join(home, "repos", "global") : join(home, "repos", "agents", owner.agent_id)

  /** The source with the credentials of the agent whose repository it is; the global one is reached as choird's user. */
  const checkedFor = Effect.fnUntraced(function* (owner: RepoOwner, source: RepoSource, access: RepoAccess = running) {
    const checked = yield* Effect.fromResult(checkSource(source))
    if ("global" in owner) return checked
    const { agent_id, git_identity } = owner
    const bound = yield* access(agent_id, checked, git_identity)
    return git_identity === undefined || bound.credential !== undefined ? bound : yield* access(agent_id, checked)
  })

  /** Reads a recovered clone, one reading at a time. */
  const reading = <A>(
    read: Read,
    work: Effect.Effect<A, RepoError | PlatformError.PlatformError, Git | FileSystem.FileSystem>
  ) =>
    recover(read).pipe(
      Effect.andThen(work),
      Effect.catchTag("PlatformError", (error) =>
        Effect.fail(new RepoCacheFailed({ path: read.place, reason: error.message }))
      ),
      locked(read.place),
      Effect.provideContext(context)
    )

  return Repos.of({
    at: Effect.fn("Repos.at")(function* (owner, source, commit, wanted = {}) {
      const checked = yield* checkedFor(owner, { ...source, ref: commit })
      const read = { place: placeOf(owner), label: repoLabel(owner), source: checked, wanted }
      const known = git.files(read.place, commit, read.label, wanted)
      return yield* reading(
        read,
        Effect.catchTag(known, "GitFailed", () => fetched(read, commit))
      )
    }),
    snapshot: Effect.fn("Repos.snapshot")(function* (owner, source, { access, ...wanted } = {}) {
      const checked = yield* checkedFor(owner, source, access)
      const read = { place: placeOf(owner), label: repoLabel(owner), source: checked, wanted }
      const newest = Effect.gen(function* () {
        const known = yield* git.cached(read.place, checked)
        return yield* update(read, known).pipe(Effect.catchTag("FetchFailed", (error) => earlier(read, known, error)))
      })
      return yield* reading(read, newest)
    }),
    uncommitted: Effect.fn("Repos.uncommitted")(function* (owner, source, { commit, stale }) {
      const checked = checkSource(source)
      if (stale || Result.isFailure(checked)) return []
      const place = placeOf(owner)
      const count = yield* locked(place)(git.uncommitted(place, checked.success, commit))
      return count === 0 ? [] : [uncommittedText(count, checked.success.url)]
    })
  })
})
