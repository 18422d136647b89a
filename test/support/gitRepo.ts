/** Real git repositories for tests, hostile ones included: trees are written object by object, so that any name and mode can be had. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { deflateSync } from "node:zlib"
import { Effect } from "effect"

/** An entry of a tree. Without `mode` it is a file, executable when its text starts with `#!`. */
export interface Entry {
  readonly path: string
  readonly content?: string | Uint8Array
  readonly mode?: string
  /** An object that is there already, or of another repository. */
  readonly id?: string
}

export interface GitRepo {
  readonly path: string
  git(args: ReadonlyArray<string>, input?: string | Uint8Array): string
  /** Commits exactly these files on a branch, and gives the commit. */
  commit(files: Readonly<Record<string, string | Uint8Array>> | ReadonlyArray<Entry>, branch?: string): string
  /** Commits a tree that git's own commands would refuse: names are taken as they are, without folders. */
  commitRaw(entries: ReadonlyArray<{ readonly name: Uint8Array; readonly mode: string; readonly id: string }>): string
  blob(content: string | Uint8Array): string
}

const ENVIRONMENT = {
  PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Test",
  GIT_AUTHOR_EMAIL: "test@localhost",
  GIT_AUTHOR_DATE: "2026-01-01T00:00:00Z",
  GIT_COMMITTER_NAME: "Test",
  GIT_COMMITTER_EMAIL: "test@localhost",
  GIT_COMMITTER_DATE: "2026-01-01T00:00:00Z"
}

const executableMode = (content: string | Uint8Array) =>
  Buffer.from(content).subarray(0, 2).toString() === "#!" ? "100755" : "100644"

/** A tree's entries by name; a folder has its own. */
type Tree = Map<string, { readonly mode: string; readonly id: string } | Tree>

/** Adds a file at its path, with the folders on the way. */
const addFile = (root: Tree, path: string, file: { readonly mode: string; readonly id: string }): void => {
  const names = path.split("/")
  const name = names.pop() ?? ""
  let tree = root
  for (const folder of names) {
    const known = tree.get(folder)
    const next: Tree = known instanceof Map ? known : new Map()
    tree.set(folder, next)
    tree = next
  }
  tree.set(name, file)
}

/** What git writes of a new repository with a work tree. */
const CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
const WHO = "Test <test@localhost> 1767225600 +0000"

/**
 * A repository with a work tree, whose branch is `main`. It is written without git, of which three processes for each commit would be most of what
 * a test takes.
 */
export const makeGitRepo = (path: string): GitRepo => {
  const folder = join(path, ".git")
  for (const name of ["objects/info", "objects/pack", "refs/heads", "refs/tags"])
    mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, "HEAD"), "ref: refs/heads/main\n")
  writeFileSync(join(folder, "config"), CONFIG)
  const git: GitRepo["git"] = (args, input = "") =>
    execFileSync("git", ["-C", path, "-c", "core.protectNTFS=false", ...args], {
      input,
      env: ENVIRONMENT,
      stdio: ["pipe", "pipe", "pipe"]
    })
      .toString()
      .trim()
  const write = (type: "blob" | "commit" | "tree", content: string | Uint8Array): string => {
    const bytes = Buffer.from(content)
    const object = Buffer.concat([Buffer.from(`${type} ${bytes.length}\0`), bytes])
    const id = createHash("sha1").update(object).digest("hex")
    const file = join(folder, "objects", id.slice(0, 2), id.slice(2))
    mkdirSync(dirname(file), { recursive: true })
    if (!existsSync(file)) writeFileSync(file, deflateSync(object), { mode: 0o444 })
    return id
  }
  const entry = (mode: string, name: Uint8Array, id: string) =>
    Buffer.concat([Buffer.from(`${mode} `), name, Buffer.from([0]), Buffer.from(id, "hex")])
  /** Git sorts a folder as if its name ended in a slash. */
  const writeTree = (tree: Tree): string => {
    const entries = [...tree].map(([name, file]) =>
      file instanceof Map
        ? { key: Buffer.from(`${name}/`), line: entry("40000", Buffer.from(name), writeTree(file)) }
        : { key: Buffer.from(name), line: entry(file.mode, Buffer.from(name), file.id) }
    )
    entries.sort((one, other) => Buffer.compare(one.key, other.key))
    return write("tree", Buffer.concat(entries.map(({ line }) => line)))
  }
  const publish = (tree: string, branch = "main") => {
    const commit = write("commit", `tree ${tree}\nauthor ${WHO}\ncommitter ${WHO}\n\ntest\n`)
    const ref = join(folder, "refs/heads", branch)
    mkdirSync(dirname(ref), { recursive: true })
    writeFileSync(ref, `${commit}\n`)
    return commit
  }
  return {
    path,
    git,
    blob: (content) => write("blob", content),
    commit: (files, branch) => {
      const entries: ReadonlyArray<Entry> = Array.isArray(files)
        ? files
        : Object.entries(files).map(([path, content]) => ({ path, content }))
      const root: Tree = new Map()
      for (const { path, content = "", mode = executableMode(content), id = write("blob", content) } of entries)
        addFile(root, path, { mode, id })
      return publish(writeTree(root), branch)
    },
    commitRaw: (entries) =>
      publish(write("tree", Buffer.concat(entries.map(({ name, mode, id }) => entry(mode, name, id)))))
  }
}

/** A folder that is gone with the test. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-test-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)
