/** `choirctl backup`: a whole home in one file, while choird runs or without it. */
import { closeSync, openSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Clock, DateTime, Effect, FileSystem, Redacted } from "effect"
import type { Config } from "#schema/Config.ts"
import { ResourceName, SecretName } from "#schema/Ids.ts"
import { measureFolder } from "#src/choirctl/home/folderContents.ts"
import { secretsPath } from "#src/choirctl/home/homeFiles.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { CONFIG_FILE, loadFiles } from "#src/shared/config/configFiles.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { holdLockFile } from "#src/shared/files/lockFile.ts"
import { addArchived, holdArchived, makeArchivedRows } from "./archivedSessions.ts"
import { nowhere, readArchive } from "./ArchiveReader.ts"
import { type Archive, makeArchive } from "./ArchiveWriter.ts"
import { makeBackup } from "./backupFile.ts"
import { makeOwnFolder, ownFoldersIn, putInPlace, requireSpace } from "./freshFiles.ts"
import {
  ARCHIVE_FORMAT,
  ARCHIVES,
  bound,
  bundleName,
  CONFIG,
  CONFIG_SCHEMA,
  DATABASE,
  FORMAT,
  MANIFEST,
  type Manifest,
  SECRETS,
  type Source,
  type WorkspaceContents
} from "./manifest.ts"
import { seal } from "./sealedSecrets.ts"
import { bundle, findRepositories } from "./sourceBundles.ts"
import { addWorkspace, misplacedWorkspace } from "./workspaces.ts"

/** The steps of a backup, in their order. */
export const BACKUP_STEPS = [
  "reading the configuration",
  "copying the database",
  "bundling the sources",
  "writing the file",
  "sealing the secrets",
  "reading it back",
  "putting it in place"
] as const
type Step = (typeof BACKUP_STEPS)[number]

export interface BackupOptions<Needs> {
  readonly home: string
  readonly file: string
  readonly version: string
  readonly workspaces: boolean
  /** Takes the files of archived sessions along. */
  readonly archives: boolean
  /** Takes the values of the secrets along. */
  readonly secrets: boolean
  /** Seals the secrets and proves the rest of the file; without one only the names of secrets are in the backup. */
  readonly passphrase: Redacted.Redacted | undefined
  /** Runs each step; also where a person sees it. */
  readonly step: (name: Step) => <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | Needs>
}

/** Entries of a home that are in the backup, or that Choir makes again. */
const KNOWN = new Set([
  CONFIG_FILE,
  CONFIG_SCHEMA,
  "secrets.json",
  "sources",
  "workspaces",
  ARCHIVES,
  "data",
  "socks",
  "metrics.token",
  "backup.lock",
  "choird.lock",
  "files.lock"
])
const MADE_AGAIN: Readonly<Record<string, string>> = {
  images: "images/ (choirctl agent build makes them again)",
  repos: "repos/ (fetched again by the next build)",
  logs: "logs/",
  outgoing: "outgoing/ (files on their way to a chat)",
  trials: "trials/ (workspaces of running trials)",
  "config.last-good.json": "config.last-good.json (choird writes it again)"
}

const ARCHIVES_LEFT_OUT =
  "archive/, the only copy of archived sessions: copy this folder yourself, and put it into the restored home"

/** Files of the home that no part of a backup covers. */
const strangers = (home: string) =>
  readdirSync(home)
    .filter((name) => !KNOWN.has(name))
    .map((name) => MADE_AGAIN[name] ?? `${name}: not one of Choir's files`)

const isBelow = (folder: string, path: string) => resolve(path).startsWith(`${folder}/`)

interface Base {
  readonly home: string
  readonly real_home: string
}

/** Only workspaces of the home itself are backed up: a restore writes nowhere else. */
const ownWorkspaces = ({ workspaces }: Config, { home, real_home }: Base) =>
  Object.entries(workspaces).map(([key, { path }]) => ({
    name: ResourceName.make(key),
    path,
    own: isBelow(home, path) || isBelow(real_home, path)
  }))

const addWorkspaces = Effect.fnUntraced(function* (archive: Archive, config: Config, base: Base, wanted: boolean) {
  const contents: Array<WorkspaceContents> = []
  const left_out: Array<string> = []
  const taken = { entries: 0, bytes: 0 }
  for (const { name, own, path } of ownWorkspaces(config, base)) {
    if (!wanted) left_out.push(`the workspace ${name} (choirctl backup --workspaces includes it)`)
    else if (!own) left_out.push(`the workspace ${name}, which is outside the home: ${path}`)
    else {
      const added = yield* addWorkspace(archive, name, path, taken)
      contents.push(added.contents)
      left_out.push(...added.left_out)
    }
  }
  return { contents, left_out }
})

/** A folder beside the file, on the same disk, which is gone with the scope. A killed backup's is cleared by the next one. */
const workFolder = Effect.fnUntraced(function* (file: string) {
  const prefix = `.${basename(file)}.backup-`
  const folder = dirname(file)
  const unusable = (cause: unknown) =>
    failed("FILE", `${file} cannot be written: ${String(cause)}`, "choose another place for the backup")
  const place = yield* Effect.try({ try: () => join(realpathSync(folder), basename(file)), catch: unusable })
  const { lost } = yield* holdLockFile(join(dirname(place), `.${basename(place)}.lock`)).pipe(
    Effect.catchTags({
      LockTaken: () => failed("BUSY", `another choirctl is writing ${file}`, "wait until it has finished"),
      LockUnusable: unusable
    })
  )
  const work = yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        for (const left of ownFoldersIn(folder, prefix)) rmSync(left, { recursive: true, force: true })
        return makeOwnFolder(folder, prefix)
      },
      catch: unusable
    }),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  return { work, lost: Effect.mapError(lost, unusable) }
})

/** Both files of one moment, and the text of config.json as its owner wrote it. */
const readHome = (home: string) =>
  withHomeFilesLock(home)(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { config, home: real_home, secrets } = yield* loadFiles(home)
      const schema = join(home, CONFIG_SCHEMA)
      return {
        base: { home, real_home },
        config,
        secrets,
        config_text: yield* fs.readFileString(join(home, CONFIG_FILE)),
        schema_text: (yield* fs.exists(schema)) ? yield* fs.readFileString(schema) : undefined,
        secrets_text: Redacted.make(readFileSync(secretsPath(home), "utf8"))
      }
    })
  )

const checkPlace = (home: string, file: string) => {
  const there = statSync(file, { throwIfNoEntry: false })
  if (there !== undefined && !there.isFile())
    return failed("FILE", `${file} is not a file`, "name a file for the backup")
  return isBelow(home, file)
    ? failed("FILE", `${file} is inside the home and would be lost with it`, "choose a place outside the home")
    : undefined
}

/** Space that a backup needs beside the measured files: the dump of a small database, the manifest, a tar's own records. */
const SPARE_BYTES = 32 * 1024 * 1024

/**
 * Compares the free space with what the backup will need, before anything is written: the bundles twice, by themselves and in the file, the
 * workspaces and the archived sessions. The database is not measured, since its dump is far smaller than its folder.
 */
const checkSpace = Effect.fnUntraced(function* (
  work: string,
  home: string,
  { base, config }: Effect.Success<ReturnType<typeof readHome>>,
  { archives, workspaces }: Pick<BackupOptions<never>, "archives" | "workspaces">
) {
  const found = findRepositories(join(home, "sources"))
  const gits = found.repositories.map((path) => join(home, "sources", path))
  const own = workspaces ? ownWorkspaces(config, base).filter((each) => each.own) : []
  const archived = archives ? [join(home, ARCHIVES)] : []
  const folders = [...gits, ...gits, ...own.map(({ path }) => path), ...archived]
  const measured = yield* Effect.forEach(folders, measureFolder)
  const needed = measured.reduce((sum, { bytes }) => sum + bytes, SPARE_BYTES)
  yield* requireSpace(work, needed)
})

/** Sealed in place of the secrets where only the file is to be proved. */
const NO_SECRETS = Redacted.make("{}\n")

/** Refuses what a restore would refuse, while the home is still there to be changed. */
const checkWorkspaces = (config: Config, { home, real_home }: Base) => {
  const misplaced = misplacedWorkspace(config, home) ?? misplacedWorkspace(config, real_home)
  if (misplaced === undefined) return Effect.void
  const { name, owner, path } = misplaced
  return failed(
    "WORKSPACES",
    `the workspace ${name} is at ${path}, inside a folder of ${owner}, and could not be restored from a backup`,
    `move it, for example to ${join(home, "workspaces", name)}, and change its path in config.json`
  )
}

const uncommittedNotes = (sources: ReadonlyArray<Source>) =>
  sources.flatMap(({ path, uncommitted }) =>
    uncommitted === 0 ? [] : [`${uncommitted} uncommitted files in sources/${path}: commit them and back up again`]
  )

/** The parts of the folder of the repositories that a backup leaves out. */
const strangeNotes = (sources: ReadonlyArray<Source>, others: ReadonlyArray<string>) => [
  ...(sources.length === 0 ? [] : ["hooks, remotes and settings of the repositories, except user.name and user.email"]),
  ...others.map((path) => `sources/${path}: it is not in a git repository`)
]

/** Reads the written file back, and only then gives it its name. */
const proveAndPlace = Effect.fnUntraced(function* (
  fresh: string,
  { file, step }: Pick<BackupOptions<never>, "file" | "step">
) {
  yield* readArchive(fresh, nowhere).pipe(
    Effect.mapError(({ problem }) =>
      failed(
        "BACKUP_UNUSABLE",
        `the written file is not a complete backup: ${problem}`,
        "check the disk, then try again"
      )
    ),
    step("reading it back")
  )
  const bytes = statSync(fresh).size
  yield* Effect.acquireUseRelease(
    Effect.sync(() => openSync(fresh, "r")),
    (descriptor) => putInPlace(file, fresh, descriptor),
    (descriptor) => Effect.sync(() => closeSync(descriptor))
  ).pipe(step("putting it in place"))
  return bytes
})

/** Makes the backup, reads it back, and only then gives it its name. Answers what it holds. */
const writeBackup = Effect.fnUntraced(function* <Needs>(
  options: BackupOptions<Needs>,
  work: string,
  read: Effect.Success<ReturnType<typeof readHome>>
) {
  const { home, passphrase, step, version } = options
  const now = DateTime.makeUnsafe(yield* Clock.currentTimeMillis)
  const mtime = DateTime.toDateUtc(now)
  const rows = makeArchivedRows()
  const database = yield* makeBackup(join(work, DATABASE), rows.take).pipe(step("copying the database"))
  const found = findRepositories(join(home, "sources"))
  const sources = yield* Effect.forEach(found.repositories, (path) => bundle(join(home, "sources"), path, work)).pipe(
    step("bundling the sources")
  )
  const fresh = join(work, "archive")
  const archive = yield* makeArchive(fresh)
  const { archived, workspaces } = yield* Effect.gen(function* () {
    yield* archive.text(FORMAT, `${JSON.stringify({ format: ARCHIVE_FORMAT, choir: version })}\n`, mtime)
    yield* archive.text(CONFIG, read.config_text, mtime)
    if (read.schema_text !== undefined) yield* archive.text(CONFIG_SCHEMA, read.schema_text, mtime)
    yield* archive.file(DATABASE, join(work, DATABASE), mtime)
    for (const { empty, path } of sources)
      if (!empty) yield* archive.file(bundleName(path), join(work, bundleName(path)), mtime)
    return {
      archived: options.archives ? yield* addArchived(archive, home, rows.all()) : undefined,
      workspaces: yield* addWorkspaces(archive, read.config, read.base, options.workspaces)
    }
  }).pipe(step("writing the file"))
  const names = Object.keys(read.secrets).map((name) => SecretName.make(name))
  const with_secrets = options.secrets && passphrase !== undefined
  const manifest = {
    format: ARCHIVE_FORMAT,
    choir: version,
    created_at: database.header.created_at,
    ...read.base,
    database: { engine: database.header.engine, sessions: database.sessions, events: database.events },
    secrets: { names, sealed: passphrase !== undefined, values: with_secrets },
    sources,
    workspaces: workspaces.contents,
    ...(archived === undefined ? {} : { archived: archived.contents }),
    left_out: [
      ...(archived?.left_out ?? [ARCHIVES_LEFT_OUT]),
      ...uncommittedNotes(sources),
      ...strangeNotes(sources, found.others),
      ...workspaces.left_out,
      ...strangers(home),
      ...(!with_secrets && names.length > 0 ? [`the values of the secrets ${names.join(", ")}`] : [])
    ]
  }
  // The member that names the format is proved by being read, and is not one of those that the manifest lists.
  const members = () => archive.members().filter(({ name }) => name !== FORMAT)
  const complete: Manifest = yield* Effect.gen(function* () {
    const unsealed: Manifest = { ...manifest, members: members() }
    const secrets = with_secrets ? read.secrets_text : NO_SECRETS
    if (passphrase !== undefined) yield* archive.text(SECRETS, yield* seal(secrets, passphrase, bound(unsealed)), mtime)
    const whole: Manifest = { ...manifest, members: members() }
    yield* archive.text(MANIFEST, `${JSON.stringify(whole)}\n`, mtime)
    yield* archive.end
    return whole
  }).pipe(step("sealing the secrets"))
  const bytes = yield* proveAndPlace(fresh, options)
  const { broken } = database
  return { bytes, broken, damaged: archived?.damaged ?? [], manifest: complete }
})

/** Makes a backup, unless another program writes the same file or comes to write it. */
export const backupHome = Effect.fn("backupHome")(function* <Needs>(options: BackupOptions<Needs>) {
  const { file, home } = options
  const problem = checkPlace(home, file)
  if (problem !== undefined) return yield* problem
  const { lost, work } = yield* workFolder(file)
  const read = yield* readHome(home).pipe(options.step("reading the configuration"))
  yield* checkWorkspaces(read.config, read.base)
  yield* checkSpace(work, home, read, options)
  const archives = options.archives ? yield* holdArchived(home) : { lost: Effect.never }
  return yield* Effect.raceAllFirst([writeBackup(options, work, read), lost, archives.lost])
}, Effect.scoped)
