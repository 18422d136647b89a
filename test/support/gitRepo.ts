/** Real git repositories for tests, hostile ones included: trees are written object by object, so that any name and mode can be had. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
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

/** A repository with a work tree, whose branch is `main`. */
export const makeGitRepo = (path: string): GitRepo => {
  mkdirSync(path, { recursive: true })
  const git: GitRepo["git"] = (args, input = "") =>
    execFileSync("git", ["-C", path, "-c", "core.protectNTFS=false", ...args], {
      input,
      env: ENVIRONMENT,
      stdio: ["pipe", "pipe", "pipe"]
    })
      .toString()
      .trim()
  git(["init", "--quiet", "--template=", "--initial-branch=main"])
  // Blobs and refs are written without git, since a process for each file would be most of what a test takes.
  const blob: GitRepo["blob"] = (content) => {
    const bytes = Buffer.from(content)
    const object = Buffer.concat([Buffer.from(`blob ${bytes.length}\0`), bytes])
    const id = createHash("sha1").update(object).digest("hex")
    mkdirSync(join(path, ".git/objects", id.slice(0, 2)), { recursive: true })
    writeFileSync(join(path, ".git/objects", id.slice(0, 2), id.slice(2)), deflateSync(object))
    return id
  }
  const publish = (tree: string, branch = "main") => {
    const commit = git(["commit-tree", tree, "-m", "test"])
    writeFileSync(join(path, ".git/refs/heads", branch), `${commit}\n`)
    return commit
  }
  return {
    path,
    git,
    blob,
    commit: (files, branch) => {
      const entries: ReadonlyArray<Entry> = Array.isArray(files)
        ? files
        : Object.entries(files).map(([path, content]) => ({ path, content }))
      const lines = entries.map(({ path, content = "", mode = executableMode(content), id = blob(content) }) => {
        return `${mode} ${id}\t${path}\0`
      })
      rmSync(join(path, ".git/index"), { force: true })
      git(["update-index", "-z", "--index-info"], lines.join(""))
      return publish(git(["write-tree", "--missing-ok"]), branch)
    },
    commitRaw: (entries) => {
      const body = entries.map(({ name, mode, id }) =>
        Buffer.concat([Buffer.from(`${mode} `), name, Buffer.from([0]), Buffer.from(id, "hex")])
      )
      return publish(git(["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], Buffer.concat(body)))
    }
  }
}

/** A folder that is gone with the test. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-test-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)
