/** The git repositories below `sources/` as bundles, and made again from them. Git is called as on any repository that may be hostile. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from "node:fs"
import { join } from "node:path"
import { Effect, FileSystem, Option, Schema } from "effect"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { type GitCall, runGit } from "#src/shared/git/git.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { BUNDLE_BYTES_MAX, bundleName, isRelativePath, Source } from "./manifest.ts"

const STATUS_BYTES_MAX = 16 * 1024 * 1024
const COMPARE_MS_MAX = 600_000
/** Hexadecimal digits of a commit in a repository of SHA-256. */
const SHA256_DIGITS = 64

/**
 * How many files below `folder` differ from `commit`, or are there when it is empty. A repository made for this question looks at them
 * with the objects of `gitDir`: the configuration, attributes and index of that one, which may name programs to run, are never read.
 */
const countUncommitted = Effect.fn("uncommittedFiles.count")(function* (
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

const BUNDLE_MS_MAX = 600_000
/** Folders between `sources` and a repository. */
const DEPTH_MAX = 6
/** Where a commit is kept that no branch holds, until it is checked out. */
const DETACHED = "refs/choir/restored"

const isFolder = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** Where git keeps a repository's own files, if there is a repository. */
const gitDirOf = (folder: string): { readonly gitDir: string; readonly bare: boolean } | undefined => {
  if (isFolder(join(folder, ".git"))) return { gitDir: join(folder, ".git"), bare: false }
  const isBare = isFolder(join(folder, "objects")) && isFolder(join(folder, "refs"))
  return isBare ? { gitDir: folder, bare: true } : undefined
}

/** The repositories below a folder by their paths, and what is beside them. */
export const findRepositories = (sources: string) => {
  const repositories: Array<string> = []
  const others: Array<string> = []
  const look = (path: string, depth: number) => {
    for (const entry of readdirSync(join(sources, path), { withFileTypes: true })) {
      const below = path === "" ? entry.name : `${path}/${entry.name}`
      if (!entry.isDirectory() || !isRelativePath(below)) others.push(below)
      else if (gitDirOf(join(sources, below)) !== undefined) repositories.push(below)
      else if (depth < DEPTH_MAX) look(below, depth + 1)
      else others.push(below)
    }
  }
  if (isFolder(sources)) look("", 1)
  return { repositories: repositories.sort(), others: others.sort() }
}

const answer = (call: GitCall) => Effect.map(runGit(call), (bytes) => Buffer.from(bytes).toString("utf8").trim())
const answerIfAny = (call: GitCall) =>
  Effect.map(Effect.option(answer(call)), (found) => Option.getOrElse(found, () => ""))

const decodeSource = Schema.decodeUnknownEffect(Source)

const unbundled = (repository: string) => (problem: string) =>
  failed(
    "SOURCES",
    `${repository} cannot be backed up: ${problem}`,
    `git -C ${shellQuoted(repository)} fsck, and fix what it reports`
  )

/** Writes the bundle of one repository into `folder` and answers what it is. */
export const bundle = Effect.fn("sourceBundles.bundle")(function* (sources: string, path: string, folder: string) {
  const repository = join(sources, path)
  const refuse = unbundled(repository)
  const place = gitDirOf(repository)
  if (place === undefined) return yield* refuse("it is no longer a git repository")
  const { bare, gitDir } = place
  const branch = yield* answerIfAny({ gitDir, args: ["symbolic-ref", "--quiet", "--short", "HEAD"] })
  const commit = yield* answerIfAny({ gitDir, args: ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"] })
  const refs = yield* answer({ gitDir, args: ["for-each-ref", "--count=1", "refs/heads", "refs/tags"] })
  const empty = commit === "" && refs === ""
  const setting = (key: string) => answerIfAny({ gitDir, args: ["config", "--local", "--get", key] })
  const [name, email] = [yield* setting("user.name"), yield* setting("user.email")]
  const uncommitted = bare ? 0 : yield* countUncommitted(repository, gitDir, commit)
  const target = join(folder, bundleName(path))
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(join(target, ".."), { recursive: true })
  if (!empty)
    yield* runGit({
      gitDir,
      args: ["bundle", "create", "--quiet", target, "--all"],
      timeoutMs: BUNDLE_MS_MAX
    })
  if (!empty && lstatSync(target).size > BUNDLE_BYTES_MAX)
    return yield* refuse(`its bundle is larger than ${BUNDLE_BYTES_MAX / 1024 ** 3} GiB`)
  return yield* decodeSource({
    path,
    bare,
    empty,
    head: branch === "" ? { commit } : { branch },
    user: { ...(name === "" ? {} : { name }), ...(email === "" ? {} : { email }) },
    uncommitted
  }).pipe(Effect.mapError((error) => refuse(error.message)))
})

const SIGNATURES = ["# v2 git bundle\n", "# v3 git bundle\n"]
const SIGNATURE_BYTES = Buffer.byteLength(SIGNATURES[0] ?? "")

/** Whether git reads the file as a bundle. Of anything else it may make the address of a repository on this host. */
const isBundle = (path: string) => {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const start = Buffer.alloc(SIGNATURE_BYTES)
    return fstatSync(file).isFile() && SIGNATURES.includes(start.toString("latin1", 0, readSync(file, start)))
  } finally {
    closeSync(file)
  }
}

const checkBundle = (path: string, file: string) =>
  Effect.try({ try: () => isBundle(file), catch: () => false }).pipe(
    Effect.orElseSucceed(() => false),
    Effect.filterOrFail(
      (is) => is,
      () =>
        failed(
          "SOURCES",
          `the backup has no git bundle for sources/${path}. Nothing was changed`,
          "take another copy of it, or another backup"
        )
    )
  )

const HEADS_AND_TAGS = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]

/** Makes the repository of a bundle at `repository`, with its branch checked out. */
export const unbundle = Effect.fn("sourceBundles.unbundle")(function* (
  { bare, empty, head, path, user }: Source,
  folder: string,
  repository: string
) {
  const fs = yield* FileSystem.FileSystem
  const bundled = join(folder, bundleName(path))
  if (!empty) yield* checkBundle(path, bundled)
  const gitDir = bare ? repository : join(repository, ".git")
  yield* fs.makeDirectory(repository, { recursive: true, mode: 0o700 })
  const form = bare ? ["--bare"] : []
  const branch = "branch" in head ? head.branch : "main"
  yield* runGit({ args: ["init", "--quiet", ...form, "--template=", `--initial-branch=${branch}`, repository] })
  for (const [key, value] of Object.entries(user)) yield* runGit({ gitDir, args: ["config", `user.${key}`, value] })
  if (empty) return
  const options = ["--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance"]
  const detached = "commit" in head ? [`+HEAD:${DETACHED}`] : []
  yield* runGit({
    gitDir,
    transport: "file",
    writtenBytesMax: BUNDLE_BYTES_MAX,
    timeoutMs: BUNDLE_MS_MAX,
    args: ["fetch", "--quiet", "--update-head-ok", ...options, "--", bundled, ...HEADS_AND_TAGS, ...detached]
  })
  if ("commit" in head) {
    yield* runGit({ gitDir, args: ["update-ref", "--no-deref", "HEAD", head.commit] })
    yield* runGit({ gitDir, args: ["update-ref", "-d", DETACHED] })
  }
  const born = yield* answerIfAny({ gitDir, args: ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"] })
  if (!bare && born !== "")
    yield* runGit({
      gitDir,
      args: ["--work-tree", repository, "reset", "--quiet", "--hard"],
      timeoutMs: BUNDLE_MS_MAX
    })
})
