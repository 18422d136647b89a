/**
 * The leased workspace as file tools see it: every path is a model's, so it is taken apart by spelling and walked without
 * following links (R39, R40). What cannot be reached so is refused with a sentence for the model.
 */
import { constants, openSync } from "node:fs"
import { Context, Effect, Layer, Random, Result, Schedule, Schema, type Scope } from "effect"
import { codeOf, descriptorPath } from "#src/shared/files/nofollow.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { isOfShellHome, pathInside } from "#src/shared/image/workspacePath.ts"
import { likePath } from "./likePath.ts"
import { makeKeptFolders } from "./KeptFolders.ts"
import { PathRefused, refusedBySystem, WORKSPACE_FILE_BYTES_MAX } from "./PathRefused.ts"
import { type TreeVersions, treeVersions } from "./treeVersions.ts"
import {
  closeLater,
  fileVersions,
  listFolder,
  openFolder,
  readFile,
  removeOldest,
  replaceFile
} from "./workspaceFiles.ts"
import { WORKSPACE_PATH_BYTES_MAX } from "#src/shared/image/lockKey.ts"

/** Entries of a folder that a file tool lists. */
export const FOLDER_ENTRIES_MAX = 1000
/** Tries to find a free name for the temporary file of an atomic write. */
const TEMPORARY_NAME_TRIES_MAX = 5

const NEW_FILE_MODE = 0o644
const PRIVATE_FILE_MODE = 0o600

/** A whole file at one moment. */
export interface WorkspaceFile {
  /** The one spelling of its path: relative to the root, without `.`, `..` and empty names. */
  readonly path: string
  readonly bytes: Uint8Array
  /** Of all bytes, in lowercase hex. */
  readonly sha256: string
}

export interface WorkspaceWrite {
  readonly path: string
  /** The hash of the bytes that were replaced; absent when the file is new. */
  readonly before?: string
  readonly after: string
  /** The topmost folder that was made for it. */
  readonly made?: string
}

/** How much a folder of kept files may hold. */
export interface KeepLimits {
  readonly files: number
  readonly bytes: number
  /** Of one file, where it is not {@link WORKSPACE_FILE_BYTES_MAX}. */
  readonly file_bytes?: number
  /** Whether others may read them too, as choird does that sends them. */
  readonly shared?: boolean
}

export interface WorkspaceListing {
  /** Sorted names; a folder's ends in `/`, a link's in `@`. */
  readonly entries: ReadonlyArray<string>
  /** Whether the folder holds more than these. */
  readonly truncated: boolean
}

/** An open folder that stays the same one, whatever takes its name. */
export interface WorkspaceFolder {
  /** Relative to the root; empty for the root itself. */
  readonly path: string
  /** Where a child of this process can be started in it. */
  readonly cwd: string
}

export class WorkspaceUnavailable extends Schema.TaggedError<WorkspaceUnavailable>()("WorkspaceUnavailable", {
  root: Schema.String,
  code: Schema.String
}) {
  override get message() {
    return `the workspace ${this.root} cannot be opened (${this.code}); it must be a folder that the agent may read`
  }
}

export class Workspace extends Context.Service<
  Workspace,
  {
    /** Where the workspace really lies; the working folder of processes. */
    readonly root: string
    /** Reads a regular file of at most `bytes_max`, {@link WORKSPACE_FILE_BYTES_MAX} bytes by default. */
    read(path: string, bytes_max?: number): Effect.Effect<WorkspaceFile, PathRefused>
    /**
     * Replaces a file at once by what `change` makes of it, or creates it together with its folders when `change` is given
     * `undefined`. A refusal of `change` leaves everything as it was. The caller holds the file's X lock.
     */
    update<E>(
      path: string,
      change: (current: WorkspaceFile | undefined) => Result.Result<Uint8Array, E>
    ): Effect.Effect<WorkspaceWrite, PathRefused | E>
    /**
     * Writes a file that only this user may read (0600; others too where `shared`), with its folders, and removes the oldest files beside it until all of them
     * are within the limits. The folder is for such files alone. It needs no lock: readers see whole files.
     */
    keep(path: string, bytes: Uint8Array, limits: KeepLimits): Effect.Effect<void, PathRefused>
    /** Lists at most {@link FOLDER_ENTRIES_MAX} entries of a folder. */
    list(path: string): Effect.Effect<WorkspaceListing, PathRefused>
    /**
     * The files of a folder by name, at most {@link FOLDER_ENTRIES_MAX}, each with a text that differs once the file is written to or
     * replaced; links count as files, folders do not. With `create`, a folder that is missing is made.
     */
    versions(path: string, create?: boolean): Effect.Effect<ReadonlyMap<string, string>, PathRefused>
    /** The versions of all files now, or `undefined` where they are too many to look at. */
    readonly tree: Effect.Effect<TreeVersions | undefined>
    /** Opens a folder for a child process, while the scope lives. */
    folder(path: string): Effect.Effect<WorkspaceFolder, PathRefused, Scope.Scope>
  }
>()("choir/agent/Workspace") {
  /** Opens the workspace once; `root` is the operator's own path and may lead through links. */
  static readonly layer = (options: { readonly root: string }) => Layer.effect(Workspace, make(options.root))
}

/** The names from the root down, or why there are none. */
const segmentsOf = (path: string): Result.Result<ReadonlyArray<string>, PathRefused> => {
  const refuse = (reason: PathRefused["reason"]) => Result.fail(new PathRefused({ path, reason }))
  if (path === "" || path.includes("\0") || !path.isWellFormed()) return refuse("malformed")
  if (Buffer.byteLength(path) > WORKSPACE_PATH_BYTES_MAX) return refuse("too_long")
  const inside = pathInside(path)
  if (inside === undefined) return refuse(isOfShellHome(path) ? "home" : "outside")
  return Result.succeed(inside === "" ? [] : inside.split("/"))
}

/**
 * Does something in the file system. An interrupt does not wait for it, since a workspace may lie where nobody answers: what comes of it
 * later is dropped.
 */
const attempt = <A>(
  path: string,
  act: (signal: AbortSignal) => Promise<A>,
  drop: (late: A) => void = () => undefined
): Effect.Effect<A, PathRefused> =>
  Effect.callback((resume, signal) => {
    act(signal).then(
      (value) => (signal.aborted ? drop(value) : resume(Effect.succeed(value))),
      (error) => resume(Effect.fail(refusedBySystem(path, error)))
    )
  })

/** The work still under way in an open folder, whose number must not be reused meanwhile. */
const working = new Map<number, Set<Promise<unknown>>>()

/** Does something in an open folder, which stays open until it is done, even if nobody waits for it any more. */
const inFolder = <A>(
  path: string,
  folder: number,
  act: (signal: AbortSignal) => Promise<A>,
  drop?: (late: A) => void
) =>
  attempt(
    path,
    (signal) => {
      const work = act(signal)
      const others = working.get(folder) ?? new Set()
      working.set(folder, others.add(work))
      const done = () => void others.delete(work)
      work.then(done, done)
      return work
    },
    drop
  )

const asMissing = (error: PathRefused): Effect.Effect<undefined, PathRefused> =>
  error.reason === "not_found" ? Effect.undefined : Effect.fail(error)

const close = (descriptor: number) =>
  Effect.sync(() => {
    const work = working.get(descriptor) ?? new Set()
    working.delete(descriptor)
    if (work.size === 0) closeLater(descriptor)
    else
      Promise.allSettled(work).then(
        () => closeLater(descriptor),
        () => undefined
      )
  })

/** Writes under a name that no other writer took; only a collision is tried again. */
const replace = Effect.fnUntraced(
  function* (path: string, folder: number, name: string, bytes: Uint8Array, mode: number) {
    const temporary = `.choir-${(yield* Random.nextIntBetween(0, 2 ** 48)).toString(36)}.tmp`
    yield* inFolder(path, folder, (signal) => replaceFile(folder, name, { bytes, mode, temporary }, signal))
  },
  Effect.retry({
    times: TEMPORARY_NAME_TRIES_MAX,
    while: (error) => error.code === "EEXIST",
    schedule: Schedule.forever
  })
)

/** Paths that exist for those that lead nowhere below a root. */
const likeness = (rootFolder: number) => {
  const like = (path: string, names: ReadonlyArray<string>, exact: boolean) =>
    inFolder(path, rootFolder, (signal) => likePath(rootFolder, names, exact, signal)).pipe(
      Effect.catch(() => Effect.undefined)
    )
  return {
    /** A refusal that names the path that may have been meant. */
    orLike: (names: ReadonlyArray<string>) => (error: PathRefused) =>
      error.reason === "not_found"
        ? Effect.flatMap(
            like(error.path, names, false),
            (meant) =>
              new PathRefused({
                path: error.path,
                reason: error.reason,
                ...(error.code === undefined ? {} : { code: error.code }),
                ...(meant === undefined ? {} : { like: meant })
              })
          )
        : error,
    /** Refuses to make a file beside one whose name looks the same; plain letters have one spelling. */
    withoutTwin: Effect.fnUntraced(function* (path: string, names: ReadonlyArray<string>) {
      if (Buffer.byteLength(path) === path.length) return
      const meant = yield* like(path, names, true)
      if (meant !== undefined) return yield* new PathRefused({ path, reason: "twin", code: "EEXIST", like: meant })
    })
  }
}

/** Opens folders below a root until the scope closes. */
const openBelow =
  (rootFolder: number) =>
  (path: string, names: ReadonlyArray<string>, create = false) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.tap(
        restore(inFolder(path, rootFolder, (signal) => openFolder(rootFolder, names, create, signal), closeLater)),
        (folder) => Effect.addFinalizer(() => close(folder))
      )
    )

/** The parts of a path of a file, by its spelling alone. */
const locate = Effect.fnUntraced(function* (path: string) {
  const names = yield* Effect.fromResult(segmentsOf(path))
  const name = names.at(-1)
  if (name === undefined) return yield* new PathRefused({ path, reason: "folder" })
  return { path: names.join("/"), parents: names.slice(0, -1), name }
})

/** A file of an open folder, with its mode. */
const readIn = Effect.fnUntraced(function* (path: string, folder: number, name: string) {
  const { bytes, mode } = yield* inFolder(path, folder, () => readFile(folder, name, WORKSPACE_FILE_BYTES_MAX))
  return { file: { path, bytes, sha256: sha256(bytes) }, mode }
})

/** The methods that show what is in folders, and read no file. */
const makeListings = (rootFolder: number, open: ReturnType<typeof openBelow>) => {
  const { orLike } = likeness(rootFolder)

  const folder = Effect.fn("Workspace.folder")(function* (path: string) {
    const names = yield* Effect.fromResult(segmentsOf(path))
    return { path: names.join("/"), cwd: descriptorPath(yield* Effect.catch(open(path, names), orLike(names))) }
  })

  const list = Effect.fn("Workspace.list")(function* (path: string) {
    const names = yield* Effect.fromResult(segmentsOf(path))
    const opened = yield* Effect.catch(open(path, names), orLike(names))
    return yield* inFolder(path, opened, () => listFolder(opened, FOLDER_ENTRIES_MAX))
  }, Effect.scoped)

  const versions = Effect.fn("Workspace.versions")(function* (path: string, create = false) {
    const opened = yield* open(path, yield* Effect.fromResult(segmentsOf(path)), create)
    return yield* inFolder(path, opened, () => fileVersions(opened, FOLDER_ENTRIES_MAX))
  }, Effect.scoped)

  const tree = inFolder(".", rootFolder, (signal) => treeVersions(rootFolder, signal)).pipe(
    Effect.orElseSucceed(() => undefined)
  )

  return { folder, list, versions, tree }
}

const make = Effect.fnUntraced(function* (root: string) {
  const rootFolder = yield* Effect.acquireRelease(
    Effect.try({
      try: () => openSync(root, constants.O_RDONLY | constants.O_DIRECTORY),
      catch: (error) => new WorkspaceUnavailable({ root, code: codeOf(error) ?? "unknown" })
    }),
    close
  )
  const open = openBelow(rootFolder)
  const folders = yield* makeKeptFolders(rootFolder)
  const { orLike, withoutTwin } = likeness(rootFolder)

  const read = Effect.fnUntraced(function* (path: string, bytes_max = WORKSPACE_FILE_BYTES_MAX) {
    const { name, parents, path: inside } = yield* locate(path)
    const { bytes } = yield* inFolder(inside, rootFolder, (signal) =>
      folders.use(parents, signal, (folder) => readFile(folder, name, bytes_max))
    ).pipe(Effect.catch(orLike([...parents, name])))
    return { path: inside, bytes, sha256: sha256(bytes) }
  })

  /** The topmost of the folders on the way to a path that is not there. */
  const firstMissing = Effect.fnUntraced(function* ({ parents, path }: Effect.Success<ReturnType<typeof locate>>) {
    for (const depth of parents.keys()) {
      const names = parents.slice(0, depth + 1)
      if ((yield* Effect.catch(open(path, names), asMissing)) === undefined) return names.join("/")
    }
    return undefined
  })

  const update = Effect.fn("Workspace.update")(function* <E>(
    path: string,
    change: (current: WorkspaceFile | undefined) => Result.Result<Uint8Array, E>
  ) {
    const at = yield* locate(path)
    const parent = yield* Effect.catch(open(at.path, at.parents), asMissing)
    const current = parent === undefined ? undefined : yield* Effect.catch(readIn(at.path, parent, at.name), asMissing)
    if (current === undefined) yield* withoutTwin(at.path, [...at.parents, at.name])
    const bytes = yield* Effect.fromResult(change(current?.file))
    if (bytes.length > WORKSPACE_FILE_BYTES_MAX) return yield* new PathRefused({ path: at.path, reason: "too_large" })
    const made = parent === undefined ? yield* firstMissing(at) : undefined
    const folder = parent ?? (yield* open(at.path, at.parents, true))
    yield* replace(at.path, folder, at.name, bytes, current?.mode ?? NEW_FILE_MODE)
    const after = sha256(bytes)
    if (current !== undefined) return { path: at.path, before: current.file.sha256, after }
    return { path: at.path, after, ...(made === undefined ? {} : { made }) }
  }, Effect.scoped)

  const keep = Effect.fn("Workspace.keep")(function* (path: string, bytes: Uint8Array, limits: KeepLimits) {
    const at = yield* locate(path)
    if (bytes.length > (limits.file_bytes ?? WORKSPACE_FILE_BYTES_MAX))
      return yield* new PathRefused({ path: at.path, reason: "too_large" })
    const folder = yield* open(at.path, at.parents, true)
    yield* replace(at.path, folder, at.name, bytes, limits.shared === true ? NEW_FILE_MODE : PRIVATE_FILE_MODE)
    yield* inFolder(at.path, folder, async () => {
      const { entries } = await listFolder(folder, FOLDER_ENTRIES_MAX)
      await removeOldest(folder, entries, at.name, limits)
    })
  }, Effect.scoped)

  return Workspace.of({ root, read, update, keep, ...makeListings(rootFolder, open) })
})
