/**
 * The files of the workspace that a command names, for the person who is asked about it: what they hold is a part of what it does. Where the
 * words of a command do not tell its files, nothing fixes what a repetition of it would do.
 */
import { lstat } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import type { AttachedFile } from "#schema/Approval.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import type { Workspace } from "#src/agent/workspace/Workspace.ts"
import type { UsedFiles } from "./Tool.ts"

/** Words of a command that are looked up as files. */
const WORDS_MAX = 256
/** Files that one command is shown with. */
const FILES_MAX = 16

/** Signs of which a shell makes other words, so that the names of files are not in the text. */
const EXPANDS = /[$`*?[\]{}~\\!#\n\r]/u
/** Ends of a word: blanks and the shell's own signs. */
const END = "[\\s|&;<>()]"
/** The next part: blanks, signs of the shell, a word in quotes of either kind, a plain word. A quote within a word fits no part. */
const NEXT = new RegExp(
  `\\s+|(?<sign>[|&;<>()]+)|(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<plain>[^\\s"'|&;<>()]+))(?=${END}|$)`,
  "uy"
)
/** Signs by which a text has words of its own when a shell reads it. */
const IS_TEXT = /[\s"'|&;<>()]/u
/** Addresses of the web name no file here. */
const ADDRESS = /\bhttps?:\/\/[^\s"'|&;<>()]*/gu
/** Folders of the host's and the image's programs, which no command writes. */
const SYSTEM = /^\/(?:usr|bin|sbin|lib|lib64|etc|dev\/null)(?:\/|$)/u

/** Programs that go elsewhere, run what their input says, or do what files say that nobody names: recipes, configuration, hooks. */
const TAKES_ORDERS = new Set(
  (
    "cd pushd popd eval exec xargs parallel find env sudo git hg make gmake cmake ninja just task rake npm npx pnpm yarn bun bunx deno tsx " +
    "cargo go mvn gradle gradlew ant sbt composer bundle gem pip pip3 pipx poetry uv uvx tox nox pytest docker podman docker-compose " +
    "terraform ansible ansible-playbook kubectl helm ssh scp sftp rsync crontab at run-parts screen tmux"
  ).split(" ")
)
/** Languages: their program is the file that is named next, or else in a text that may load any file. */
const LANGUAGE =
  /^(?:python|pypy|node|nodejs|perl|ruby|php|lua|luajit|tclsh|Rscript|R|java|julia|elixir|erl|ghc|runghc|raku|guile|racket|sbcl|swift|scala|kotlin|groovy|awk|gawk|mawk|sed)[\d.]*$/u

/** A word, or the end of a command or of a part of it. */
type Token = { readonly word: string; readonly quoted: boolean } | "end"

/** The words of a command; `undefined` where quotes make other words of them. */
const tokens = (command: string): ReadonlyArray<Token> | undefined => {
  const found: Array<Token> = []
  for (NEXT.lastIndex = 0; NEXT.lastIndex < command.length;) {
    const groups = NEXT.exec(command)?.groups
    if (groups === undefined) return undefined
    const word = groups["double"] ?? groups["single"] ?? groups["plain"]
    if (groups["sign"] !== undefined) found.push("end")
    else if (word !== undefined) found.push({ word, quoted: groups["plain"] === undefined })
  }
  return found
}

/** Whether a program of a language is anything but the file that is named next. */
const readsElsewhere = (all: ReadonlyArray<Token>, at: number): boolean => {
  const [token, next] = [all[at], all[at + 1]]
  if (token === undefined || token === "end" || !LANGUAGE.test(programOf(token.word))) return false
  return next === undefined || next === "end" || next.quoted || next.word.startsWith("-")
}

const programOf = (word: string): string => word.split("/").at(-1) ?? ""

/** Ways to read a word as the name of a file: whole, behind an option's letter, and each part between signs such as `=` and `@`. */
const namesIn = (word: string): ReadonlyArray<string> =>
  [word, word.replace(/^-[A-Za-z]/u, ""), ...word.split(/[=:,@+%]/u)].filter(
    (name) => name !== "" && !name.startsWith("-")
  )

/** The names that may be files of the workspace; `undefined` where the text does not tell them. Pure. */
export const fileWords = (command: string): ReadonlyArray<string> | undefined => {
  if (EXPANDS.test(command)) return undefined
  const all = tokens(command.replaceAll(ADDRESS, " "))
  if (all === undefined || all.length > WORDS_MAX) return undefined
  const names = new Set<string>()
  for (const [at, token] of all.entries()) {
    if (token === "end") continue
    if (TAKES_ORDERS.has(programOf(token.word)) || readsElsewhere(all, at)) return undefined
    const within = token.quoted && IS_TEXT.test(token.word) ? fileWords(token.word) : []
    if (within === undefined) return undefined
    for (const name of [...namesIn(token.word), ...within]) names.add(name)
  }
  return names.size > WORDS_MAX ? undefined : [...names]
}

const UNTOLD: UsedFiles = { files: [], reads_unnamed: true }

/** A file, or whatever else is there: `undefined` for nothing. */
const kindOf = (path: string) =>
  Effect.promise(() =>
    lstat(path).then(
      (stat) => (stat.isFile() ? "file" : "other"),
      () => undefined
    )
  )

/** @param base the folder of the command, relative to the workspace; empty for the workspace itself. */
export const commandFiles = Effect.fnUntraced(function* (
  workspace: Workspace["Service"],
  command: string,
  base: string
): Effect.fn.Return<UsedFiles> {
  const names = fileWords(command)
  if (names === undefined) return UNTOLD
  const files: Array<AttachedFile> = []
  for (const name of names) {
    if (SYSTEM.test(name)) continue
    const own = name.startsWith(`${workspace.root}/`) ? name.slice(workspace.root.length + 1) : name
    const path = pathInside(own.startsWith("/") ? own : join(base, own))
    if (path === undefined) return { files, reads_unnamed: true }
    const kind = yield* kindOf(join(workspace.root, path))
    if (kind === undefined || files.some((file) => file.path === path)) continue
    const read = kind === "file" ? yield* Effect.option(workspace.read(path)) : undefined
    if (read?._tag !== "Some" || files.length >= FILES_MAX) return { files, reads_unnamed: true }
    files.push({ path, bytes: read.value.bytes.length, sha256: read.value.sha256 })
  }
  return { files }
})

/** The file that is not as it was shown; `undefined` where all are. */
export const changedFile = (shown: UsedFiles, now: UsedFiles): string | undefined => {
  const differs = (one: UsedFiles, other: UsedFiles) =>
    one.files.find(({ path, sha256 }) => !other.files.some((file) => file.path === path && file.sha256 === sha256))
  return (differs(shown, now) ?? differs(now, shown))?.path
}
