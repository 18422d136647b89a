/** `choirctl restore`: a home from its backup, on this path or another. */
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  futimesSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync
} from "node:fs"
import { dirname, join } from "node:path"
import { Effect, FileSystem, Redacted, Result, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { SecretsFile } from "#schema/Secrets.ts"
import { runTask } from "#src/choirctl/daemon/choirdProgram.ts"
import { fileText, secretsPath, writePrivate } from "#src/choirctl/home/homeFiles.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { CONFIG_FILE } from "#src/shared/config/configFiles.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { type Move, withMovedPaths } from "#src/shared/files/movedPaths.ts"
import { descriptorPath, openFolder } from "#src/shared/files/nofollow.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { type Destination, readArchive } from "./ArchiveReader.ts"
import { freeBytes, requireSpace } from "./freshFiles.ts"
import { ARCHIVES, bound, CONFIG, CONFIG_SCHEMA, DATABASE, type Manifest, SECRETS, WORKSPACES } from "./manifest.ts"
import { finishStaging, moveAside, putHome, type RestorePlace, takePlace } from "./restorePlace.ts"
import { type SealRefused, unseal } from "./sealedSecrets.ts"
import { unbundle } from "./sourceBundles.ts"
import { misplacedWorkspace, pathInHome } from "./workspaces.ts"

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

/** Space to leave free on the disk: its other files may belong to a choird that runs. */
const ROOM_BYTES_MIN = 1024 ** 3
/** Bytes between two looks at the disk. */
const ROOM_LOOK_BYTES = 16 * 1024 ** 2

/** Counts bytes, and throws once too little of the disk is left: a file of a few megabytes may unpack to hundreds of gigabytes. */
const makeRoom = (folder: string, free: () => number | undefined) => {
  let unseen = 0
  return (bytes: number) => {
    unseen += bytes
    if (unseen < ROOM_LOOK_BYTES) return
    unseen = 0
    if ((free() ?? ROOM_BYTES_MIN) < ROOM_BYTES_MIN)
      throw new Error(`unpacking it would leave less than ${bytesText(ROOM_BYTES_MIN)} free on the disk of ${folder}`)
  }
}

/**
 * The reader lets through no name that leads out of the folder, and none below a link.
 *
 * @param free the bytes that the disk has left, where it tells.
 */
export const unpackedInto = (folder: string, free = () => freeBytes(folder)): Destination => {
  const take = makeRoom(folder, free)
  return {
    file: (name, mode) => {
      const path = join(folder, name)
      mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE })
      const descriptor = openSync(path, "wx", FILE_MODE)
      return {
        write: (piece) => {
          take(piece.length)
          for (let written = 0; written < piece.length;) written += writeSync(descriptor, piece, written)
        },
        end: (mtime) => {
          fchmodSync(descriptor, mode)
          futimesSync(descriptor, mtime, mtime)
          fsyncSync(descriptor)
          closeSync(descriptor)
        }
      }
    },
    folder: (name) => void mkdirSync(join(folder, name), { recursive: true, mode: FOLDER_MODE }),
    link: (name, target) => {
      mkdirSync(dirname(join(folder, name)), { recursive: true, mode: FOLDER_MODE })
      symlinkSync(target, join(folder, name))
    }
  }
}

/** The steps of a restore, in their order. */
export const RESTORE_STEPS = [
  "checking the backup",
  "writing the configuration",
  "restoring the sources",
  "restoring the workspaces",
  "restoring the archived sessions",
  "restoring the database",
  "completing the new home",
  "moving the old home aside",
  "putting the new home in place"
] as const
type Step = (typeof RESTORE_STEPS)[number]

/** The backup and its destination, as a person sees them before deciding to restore. */
export interface Found {
  readonly manifest: Manifest
  readonly home: string
  readonly occupied: boolean
}

export interface Agreed {
  /** Opens the seal; undefined for a file without one, or one that is taken without proof. */
  readonly passphrase: Redacted.Redacted | undefined
  /** Whether the values of the secrets are wanted. */
  readonly secrets: boolean
}

export interface RestoreOptions<Refusal, Needs> {
  readonly home: string
  readonly file: string
  /** Takes sessions whose chains do not verify. */
  readonly force: boolean
  /** Decides whether to go on, and with what. */
  readonly agree: (found: Found) => Effect.Effect<Agreed, Refusal, Needs>
  /** Runs each step; also where a person sees it. */
  readonly step: (name: Step) => <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | Needs>
}

const UNPACKED = ".unpacked"
/** The database of a server, which is restored by a command of its own. */
const DATABASE_KEPT = "database.gz"

const Restored = Schema.Struct({ sessions: Schema.Natural, events: Schema.Natural })
const JsonDocument = Schema.fromJsonString(Schema.Json)
const decodeSecrets = Schema.decodeUnknownResult(Schema.fromJsonString(SecretsFile))

const otherHomes = ({ home, real_home }: Manifest) => [...new Set([home, real_home])]

/** config.json for the new place, as choird reads it. */
const movedConfig = Effect.fnUntraced(function* (file: string, text: string, move: Move) {
  const refuse = (problem: string) =>
    failed("CONFIG", `config.json in ${file} cannot be used: ${problem}`, "restore it with the Choir that made it")
  const before = yield* Effect.mapError(Schema.decodeUnknownEffect(JsonDocument)(text), () => refuse("it is not JSON"))
  const after = fileText(withMovedPaths(before, move))
  const config = yield* Effect.mapError(decodeFile(Config)(CONFIG_FILE, after), ({ problems }) => refuse(problems))
  return { config, text: after }
})

/** A file that was changed is dangerous as a whole, so no hint leads past the seal. */
const SEAL_REFUSALS: Readonly<Record<SealRefused["reason"], readonly [type: string, fix: string]>> = {
  passphrase: [
    "PASSPHRASE",
    "use the passphrase that choirctl backup was given; if you did, somebody changed the file: do not use it"
  ],
  changed: ["BACKUP_CHANGED", "do not use this file: take another copy of it, or another backup"],
  unknown: [
    "PASSPHRASE",
    "use the passphrase that choirctl backup was given; if you did, do not use this file (an older Choir made it, so the two cannot be told apart)"
  ]
}

/** Opens the seal, which proves everything else in the file too, and answers the secrets if they are wanted. */
const openSecrets = Effect.fnUntraced(function* (
  file: string,
  unpacked: string,
  manifest: Manifest,
  { passphrase, secrets }: Agreed
) {
  if (!manifest.secrets.sealed || passphrase === undefined) return undefined
  const fs = yield* FileSystem.FileSystem
  const sealed = yield* fs.readFileString(join(unpacked, SECRETS))
  const opened = yield* Effect.mapError(unseal(sealed, passphrase, bound(manifest)), ({ problem, reason }) => {
    const [type, fix] = SEAL_REFUSALS[reason]
    return failed(type, `${file} is refused: ${problem}. Nothing was restored`, fix)
  })
  if (!secrets) return undefined
  const decoded = decodeSecrets(Redacted.value(opened))
  if (Result.isFailure(decoded))
    return yield* failed("SECRETS", `the secrets in ${file} are not a valid secrets.json`, "add --without-secrets")
  return { text: Redacted.value(opened), names: new Set(Object.keys(decoded.success)) }
})

/** Refuses a workspace in a folder whose files Choir or git acts on. */
const checkWorkspaces = (file: string, config: Config, home: string) => {
  const misplaced = misplacedWorkspace(config, home)
  if (misplaced === undefined) return Effect.void
  const { name, owner, path } = misplaced
  return failed(
    "WORKSPACES",
    `${file} is refused: its workspace ${name} is at ${path}, inside a folder of ${owner}. Nothing was changed`,
    "take a backup whose workspaces have their own folders, such as workspaces/ of the home"
  )
}

/**
 * Puts the contents of each workspace in its place, and makes an empty folder for one that has none: without it no agent starts. A link
 * that a repository or another workspace brought along is never followed.
 */
const placeWorkspaces = (file: string, config: Config, { home, staging }: RestorePlace, unpacked: string) =>
  Effect.forEach(
    Object.entries(config.workspaces),
    ([name, { path }]) =>
      Effect.try({
        try: () => {
          const relative = pathInHome(path, home)
          if (relative === undefined) return
          const names = relative.split("/")
          const contents = join(unpacked, WORKSPACES, name)
          const root = openSync(staging, "r")
          try {
            closeSync(openFolder(root, names, { create: true, mode: 0o700 }))
            if (!existsSync(contents)) return
            const parent = openFolder(root, names.slice(0, -1), { create: false })
            try {
              renameSync(contents, join(descriptorPath(parent), names.at(-1) ?? ""))
            } finally {
              closeSync(parent)
            }
          } finally {
            closeSync(root)
          }
        },
        catch: (cause) =>
          failed(
            "WORKSPACES",
            `the workspace ${name} of ${file} cannot be put at ${path}: ${String(cause)}`,
            "take another backup"
          )
      }),
    { discard: true }
  )

/** The embedded database is made in the new home before that takes its place. A server's is left to a command of its own. */
const restoreDatabase = Effect.fnUntraced(function* (
  config: Config,
  { home, staging }: RestorePlace,
  unpacked: string,
  { force, move }: { readonly force: boolean; readonly move: Move }
) {
  const dump = join(unpacked, DATABASE)
  if (!("embedded" in config.postgres)) {
    renameSync(dump, join(staging, DATABASE_KEPT))
    const from = move.from.map((path) => ` --moved-from ${shellQuoted(path)}`).join("")
    return `choirctl --home ${shellQuoted(home)} db restore ${shellQuoted(join(home, DATABASE_KEPT))}${from}`
  }
  const moved = [...move.from.flatMap((path) => ["--moved-from", path]), "--moved-to", home]
  const args = ["restore", dump, ...(force ? ["--force"] : []), ...moved]
  yield* runTask(staging, args, Restored, () => Effect.void)
  return undefined
})

/** Builds the home beside its place. Nothing of the old one changes. */
const buildHome = Effect.fnUntraced(function* <E, R>(options: RestoreOptions<E, R>, place: RestorePlace) {
  const { agree, file, force, step } = options
  const fs = yield* FileSystem.FileSystem
  const { home, occupied, staging } = place
  const unpacked = join(staging, UNPACKED)
  // What is unpacked is hardly smaller than the file, and stays beside the home that is made of it.
  yield* requireSpace(staging, 2 * (yield* Effect.sync(() => statSync(file, { throwIfNoEntry: false })?.size ?? 0)))
  yield* fs.makeDirectory(unpacked, { mode: 0o700 })
  const manifest = yield* readArchive(file, unpackedInto(unpacked)).pipe(
    Effect.mapError(({ message }) =>
      failed("BACKUP_UNUSABLE", `${message}. Nothing was changed`, "take another copy of it, or another backup")
    ),
    step("checking the backup")
  )
  const agreed = yield* agree({ manifest, home, occupied })
  const move: Move = { from: otherHomes(manifest), to: home }

  const { config, opened } = yield* Effect.gen(function* () {
    const opened = yield* openSecrets(file, unpacked, manifest, agreed)
    const moved = yield* movedConfig(file, yield* fs.readFileString(join(unpacked, CONFIG)), move)
    yield* checkWorkspaces(file, moved.config, home)
    yield* writePrivate(join(staging, CONFIG_FILE), moved.text)
    yield* writePrivate(secretsPath(staging), opened?.text ?? fileText({}))
    const schema = join(unpacked, CONFIG_SCHEMA)
    if (yield* fs.exists(schema)) yield* writePrivate(join(staging, CONFIG_SCHEMA), yield* fs.readFileString(schema))
    return { config: moved.config, opened }
  }).pipe(step("writing the configuration"))

  yield* Effect.forEach(
    manifest.sources,
    (source) => unbundle(source, unpacked, join(staging, "sources", source.path)),
    { discard: true }
  ).pipe(step("restoring the sources"))
  yield* placeWorkspaces(file, config, place, unpacked).pipe(step("restoring the workspaces"))
  yield* Effect.sync(() => {
    const archived = join(unpacked, ARCHIVES)
    if (existsSync(archived)) renameSync(archived, join(staging, ARCHIVES))
  }).pipe(step("restoring the archived sessions"))
  const next = yield* restoreDatabase(config, place, unpacked, { force, move }).pipe(step("restoring the database"))
  yield* Effect.gen(function* () {
    yield* Effect.sync(() => rmSync(unpacked, { recursive: true, force: true }))
    yield* finishStaging(place)
  }).pipe(step("completing the new home"))
  return { manifest, config, next, unset: manifest.secrets.names.filter((name) => opened?.names.has(name) !== true) }
})

/** Builds the home beside its place, and puts it there in the end. Until then nothing of the old home has changed. */
export const restoreHome = Effect.fn("restoreHome")(function* <E, R>(options: RestoreOptions<E, R>) {
  const place = yield* takePlace(options.home)
  const { home } = place
  const { config, manifest, next, unset } = yield* Effect.raceFirst(buildHome(options, place), place.lost)
  const { aside } = yield* Effect.gen(function* () {
    const aside = yield* moveAside(place).pipe(options.step("moving the old home aside"))
    yield* putHome(place).pipe(options.step("putting the new home in place"))
    return { aside }
  }).pipe(Effect.uninterruptible)
  return {
    home,
    aside,
    manifest,
    /** Names of secrets that have no value in the new home. */
    unset,
    /** The command that restores the database of a server. */
    database_command: next,
    agents: Object.keys(config.agents),
    moved: !otherHomes(manifest).includes(home)
  }
}, Effect.scoped)
