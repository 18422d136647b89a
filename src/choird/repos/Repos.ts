/** The clones of the global and the agents' repositories under `<home>/repos`, made anew for each new commit. */
import { basename, dirname, join } from "node:path"
import { Context, Effect, FileSystem, Layer, Result, Schema } from "effect"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { CommitId } from "#schema/Image.ts"
import type { GitFailed, GitMissing } from "#src/shared/git/git.ts"
import { makeKeyedLock } from "#src/shared/keyedLock.ts"
import type { Wanted } from "./Blobs.ts"
import { type FetchFailed, Git, RefNotFound } from "./Git.ts"
import { RepoAccess } from "./RepoAccess.ts"
import { checkSource, type CheckedSource, type InvalidRepoSource, type RepoSource } from "./RepoSource.ts"
import type { BadRepository, RepoFile } from "./Tree.ts"
import { uncommittedText } from "./uncommitted.ts"

/** A clone that cannot be kept on disk. */
export class RepoCacheFailed extends Schema.TaggedError<RepoCacheFailed>()("RepoCacheFailed", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `cannot keep a clone at ${this.path}: ${this.reason}. Check the folder's owner and the space on its disk`
  }
}

/** The files of one commit. `stale` says that the fetch failed and an earlier clone was read, `warning` why (D42). */
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

/** Whose repository it is; an agent's is fetched as `git_identity`, where that reaches it, else as the agent's default one. */
export type RepoOwner =
  | { readonly global: true }
  | { readonly agent_id: AgentId; readonly git_identity?: ResourceName | undefined }

/** The repository's name in what people read. */
export const repoLabel = (owner: RepoOwner): string =>
  "global" in owner ? "global repository" : `repository of ${owner.agent_id}`

/** How a repository is read. */
export interface Reading extends Wanted {
  /** Asked in the place of the configuration that runs. */
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
    /** What a build of a snapshot leaves out, in words: files of a local repository that nobody committed. */
    uncommitted(owner: RepoOwner, source: RepoSource, snapshot: Snapshot): Effect.Effect<ReadonlyArray<string>>
    /** The files of a commit that was read before: from the clone, or fetched by its id beside it when that has moved on. */
    at(
      owner: RepoOwner,
      source: RepoSource,
      commit: CommitId,
      wanted?: Wanted
    ): Effect.Effect<ReadonlyArray<RepoFile>, RepoError>
  }
>()("choir/choird/repos/Repos") {
  /** @param home the folder of choird, which alone writes below its `repos`. */
  static readonly layer = (home: string) =>
    Layer.effect(
      Repos,
      Effect.gen(function* () {
        const git = yield* Git
        const fs = yield* FileSystem.FileSystem
        const running = yield* RepoAccess
        const locked = yield* makeKeyedLock

        /** Brings the clone back that a death between two renames left aside, and clears what it left half made. */
        const recover = Effect.fnUntraced(function* (place: string) {
          yield* fs.makeDirectory(dirname(place), { recursive: true, mode: 0o700 })
          if (!(yield* fs.exists(place)) && (yield* fs.exists(aside(place)))) yield* fs.rename(aside(place), place)
          const left = (yield* fs.readDirectory(dirname(place))).filter((name) => name.startsWith(fresh(place)))
          for (const name of [basename(aside(place)), ...left]) {
            yield* fs.remove(join(dirname(place), name), { recursive: true, force: true })
          }
        })

        const replace = Effect.fnUntraced(function* (place: string, clone: string) {
          if (yield* fs.exists(place)) yield* fs.rename(place, aside(place))
          yield* fs.rename(clone, place)
          yield* fs.remove(aside(place), { recursive: true, force: true })
        }, Effect.uninterruptible)

        /** A folder for contents that a reading which failed may have begun to fill. */
        const emptied = Effect.fnUntraced(function* ({ folder }: Wanted) {
          if (folder === undefined) return
          yield* fs.remove(folder, { recursive: true, force: true })
          yield* fs.makeDirectory(folder, { mode: 0o700 })
        })

        /** The newest files. They are read and checked before the clone takes the old one's place. */
        const update = Effect.fnUntraced(function* (
          place: string,
          source: CheckedSource,
          known: CommitId | undefined,
          label: string,
          wanted: Wanted
        ) {
          const folder = yield* fs.makeTempDirectoryScoped({ directory: dirname(place), prefix: fresh(place) })
          const clone = join(folder, "clone")
          yield* git.init(clone)
          const remote = yield* git.lookup(clone, source)
          if (known !== undefined && remote.commit === known) {
            const files = yield* Effect.option(
              git.files(place, known, label, wanted).pipe(Effect.tapError(Effect.logWarning))
            )
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

        const earlier = Effect.fnUntraced(function* (
          place: string,
          known: CommitId | undefined,
          label: string,
          wanted: Wanted,
          error: FetchFailed
        ) {
          if (known === undefined) return yield* error
          const warning = `${label}: ${error.message}. The clone of an earlier fetch is used, commit ${known}`
          return { commit: known, files: yield* git.files(place, known, label, wanted), stale: true, warning }
        })

        const placeOf = (owner: RepoOwner) =>
          "global" in owner ? join(home, "repos", "global") : join(home, "repos", "agents", owner.agent_id)

        /** An agent's repository is reached as the agent is allowed to, the global one as choird's user is. */
        const checkedFor = Effect.fnUntraced(function* (
          owner: RepoOwner,
          source: RepoSource,
          access: RepoAccess = running
        ) {
          const checked = yield* Effect.fromResult(checkSource(source))
          if ("global" in owner) return checked
          const { agent_id, git_identity } = owner
          const bound = yield* access(agent_id, checked, git_identity)
          return git_identity === undefined || bound.credential !== undefined ? bound : yield* access(agent_id, checked)
        })

        const fetched = Effect.fnUntraced(function* (
          place: string,
          source: CheckedSource,
          commit: CommitId,
          label: string,
          wanted: Wanted
        ) {
          const folder = yield* fs.makeTempDirectoryScoped({ directory: dirname(place), prefix: fresh(place) })
          const clone = join(folder, "clone")
          yield* git.init(clone)
          yield* git.fetch(clone, source, { name: commit, commit })
          yield* emptied(wanted)
          return yield* git.files(clone, commit, label, wanted)
        }, Effect.scoped)

        const at = Effect.fn("Repos.at")(function* (
          owner: RepoOwner,
          source: RepoSource,
          commit: CommitId,
          wanted: Wanted = {}
        ) {
          const checked = yield* checkedFor(owner, { ...source, ref: commit })
          const place = placeOf(owner)
          const label = repoLabel(owner)
          return yield* recover(place).pipe(
            Effect.andThen(git.files(place, commit, label, wanted)),
            Effect.catchTag("GitFailed", () => fetched(place, checked, commit, label, wanted)),
            Effect.catchTag("PlatformError", (error) =>
              Effect.fail(new RepoCacheFailed({ path: place, reason: error.message }))
            ),
            locked(place)
          )
        })

        const snapshot = Effect.fn("Repos.snapshot")(function* (
          owner: RepoOwner,
          source: RepoSource,
          { access, ...wanted }: Reading = {}
        ) {
          const checked = yield* checkedFor(owner, source, access)
          const place = placeOf(owner)
          const label = repoLabel(owner)
          return yield* Effect.gen(function* () {
            yield* recover(place)
            const known = yield* git.cached(place, checked)
            return yield* update(place, checked, known, label, wanted).pipe(
              Effect.catchTag("FetchFailed", (error) => earlier(place, known, label, wanted, error))
            )
          }).pipe(
            Effect.catchTag("PlatformError", (error) =>
              Effect.fail(new RepoCacheFailed({ path: place, reason: error.message }))
            ),
            locked(place)
          )
        })
        const uncommitted = Effect.fn("Repos.uncommitted")(function* (
          owner: RepoOwner,
          source: RepoSource,
          { commit, stale }: Snapshot
        ) {
          const checked = checkSource(source)
          if (stale || Result.isFailure(checked)) return []
          const place = placeOf(owner)
          const count = yield* locked(place)(git.uncommitted(place, checked.success, commit))
          return count === 0 ? [] : [uncommittedText(count, checked.success.url)]
        })
        return Repos.of({ at, snapshot, uncommitted })
      })
    )
}

// Agents' ids hold no dot, so that neither name is another agent's clone.
const aside = (place: string) => join(dirname(place), `.${basename(place)}.old`)
const fresh = (place: string) => `.${basename(place)}.new-`
