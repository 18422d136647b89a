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
/** Ends of a word: a shell's blanks, which are fewer than a pattern's, and its own signs. */
const END = "[ \\t|&;<>()]"
/** The next part: blanks, signs of the shell, a word in quotes of either kind, a plain word. A quote within a word fits no part. */
const NEXT = new RegExp(
  `[ \\t]+|(?<sign>\\d*[<>][|&<>()]*|[|&;<>()]+)|(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<plain>[^ \\t"'|&;<>()]+))(?=${END}|$)`,
  "uy"
)
/** Signs by which a text has words of its own when a shell reads it. */
const IS_TEXT = /[ \t"'|&;<>()]/u
/** Addresses of the web, which are also names of files below a folder named after their scheme. */
const ADDRESS = /(?<![^ \t"'|&;<>()=@])https?:\/\/[^ \t"'|&;<>()]*/gu
/** Folders of the host's and the image's programs, which no command writes. */
const SYSTEM = /^\/(?:usr|bin|sbin|lib|lib64|etc|dev\/null)(?:\/|$)/u
/** A step up: behind a link it is another folder than the one that the path spells. */
const STEPS_UP = /(?:^|\/)\.\.(?:\/|$)/u

/** Programs that go elsewhere, run what their input says, or do what files say that nobody names: recipes, configuration, hooks, classes. */
const TAKES_ORDERS = new Set(
  (
    "cd pushd popd eval exec xargs parallel find env sudo su doas runuser chroot git hg make gmake cmake ninja meson bazel scons just task rake " +
    "npm npx pnpm yarn bun bunx deno tsx grunt gulp webpack vite vitest jest mocha eslint tsc invoke fab mix lein pre-commit direnv mise " +
    "cargo go mvn gradle gradlew ant sbt composer bundle gem pip pipx poetry uv uvx tox nox pytest ipython jupyter docker podman docker-compose " +
    "terraform pulumi vagrant ansible ansible-playbook kubectl helm ssh scp sftp rsync crontab at run-parts screen tmux dotnet zig " +
    "sed awk gawk mawk java scala kotlin swift R sbcl erl"
  ).split(" ")
)
/** The end of a program's name that tells its version, as in `pip3.11`. */
const VERSION = /[\d.-]+$/u
/** Programs of git, which may be called by names of their own. */
const OF_GIT = /^git-/u
/** Languages: their program is the file that is named next, or else in a text that may load any file. */
const LANGUAGE =
  /^(?:python|pypy|node|nodejs|perl|ruby|php|lua|luajit|tclsh|Rscript|julia|elixir|ghc|runghc|raku|guile|racket|groovy)[\d.]*$/u
/** Shells: the same, but that they also take a text, and a file as their input. */
const SHELL = /^(?:sh|bash|dash|ash|zsh|ksh|mksh|fish)[\d.]*$/u
/** Options by which a shell reads nothing else. */
const SHELL_OPTIONS = /^-[efnuvx]+$/u
const SHELL_TEXT = /^-[efnuvx]*c$/u

/** A word, or the signs that end a command or a part of it. */
type Token = { readonly word: string; readonly quoted: boolean } | { readonly sign: string }

/** The words of a command; `undefined` where quotes make other words of them. */
const tokens = (command: string): ReadonlyArray<Token> | undefined => {
  const found: Array<Token> = []
  for (NEXT.lastIndex = 0; NEXT.lastIndex < command.length;) {
    const groups = NEXT.exec(command)?.groups
    if (groups === undefined) return undefined
    const word = groups["double"] ?? groups["single"] ?? groups["plain"]
    if (groups["sign"] !== undefined) found.push({ sign: groups["sign"] })
    else if (word !== undefined) found.push({ word, quoted: groups["plain"] === undefined })
  }
  return found
}

const programOf = (word: string): string => word.split("/").at(-1) ?? ""

const takesOrders = (program: string): boolean =>
  OF_GIT.test(program) || TAKES_ORDERS.has(program) || TAKES_ORDERS.has(program.replace(VERSION, ""))

/** The file that a shell or a language runs: its name, none where the command itself tells what it does, `undefined` where nothing tells it. */
const runBy = (program: string, rest: ReadonlyArray<Token>): ReadonlyArray<string> | undefined => {
  const isShell = SHELL.test(program)
  if (!isShell && !LANGUAGE.test(program)) return []
  const next = rest.find((token) => !(isShell && "word" in token && SHELL_OPTIONS.test(token.word)))
  if (next === undefined) return undefined
  if ("sign" in next) return isShell && (next.sign === "<" || next.sign === "<<<") ? [] : undefined
  if (isShell && SHELL_TEXT.test(next.word)) return []
  return next.word.startsWith("-") || (next.quoted && !isShell) ? undefined : [next.word]
}

/** The parts of a word between signs such as `=` and `@`, alone and together: a name may have such signs in it. */
const partsOf = (word: string): ReadonlyArray<string> => {
  const ends = [...word.matchAll(/[=:,@+%]/gu)].map(({ index }) => index)
  if (ends.length > WORDS_MAX) return []
  return [-1, ...ends].flatMap((from) =>
    [...ends, word.length].filter((to) => to > from).map((to) => word.slice(from + 1, to))
  )
}

/** Ways to read a word as the name of a file: whole, behind the letters of options, and each of its parts. */
const namesIn = (word: string): ReadonlyArray<string> => {
  const letters = /^-(?<letters>[A-Za-z\d]+)/u.exec(word)?.groups?.["letters"] ?? ""
  const behind = Array.from(letters.slice(0, WORDS_MAX), (_, at) => word.slice(at + 2))
  return [word, ...behind, ...partsOf(word)].filter((name) => name !== "" && !name.startsWith("-"))
}

/** The names that a command tells: those that may be files of the workspace, and those of programs, which have to be files. */
interface FileWords {
  readonly names: ReadonlyArray<string>
  readonly programs: ReadonlyArray<string>
}

/** The names in a command; `undefined` where the text does not tell them. Pure. */
export const fileWords = (command: string): FileWords | undefined => {
  if (EXPANDS.test(command)) return undefined
  const addresses = [...command.matchAll(ADDRESS)].map(([address]) => address)
  const all = tokens(command.replaceAll(ADDRESS, " "))
  if (all === undefined || all.length > WORDS_MAX) return undefined
  const names = new Set(addresses)
  const programs = new Set<string>()
  for (const [at, token] of all.entries()) {
    if ("sign" in token) continue
    const program = programOf(token.word)
    const run = takesOrders(program) ? undefined : runBy(program, all.slice(at + 1))
    const within = token.quoted && IS_TEXT.test(token.word) ? fileWords(token.word) : { names: [], programs: [] }
    if (run === undefined || within === undefined) return undefined
    for (const name of [...namesIn(token.word), ...within.names]) names.add(name)
    for (const name of [...run, ...within.programs]) programs.add(name)
    if (names.size > WORDS_MAX) return undefined
  }
  return { names: [...names], programs: [...programs] }
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
  const told = fileWords(command)
  if (told === undefined || told.names.some((name) => STEPS_UP.test(name))) return UNTOLD
  const files: Array<AttachedFile> = []
  for (const name of told.names) {
    if (SYSTEM.test(name)) continue
    const own = name.startsWith(`${workspace.root}/`) ? name.slice(workspace.root.length + 1) : name
    const path = pathInside(own.startsWith("/") ? own : join(base, own))
    if (path === undefined) return { files, reads_unnamed: true }
    const kind = yield* kindOf(join(workspace.root, path))
    // A program of no file is one that its language finds by itself, such as `node report`, which runs a file of another name.
    if (kind === undefined && told.programs.includes(name)) return { files, reads_unnamed: true }
    if (kind === undefined || files.some((file) => file.path === path)) continue
    const read = kind === "file" ? yield* Effect.option(workspace.read(path)) : undefined
    if (read?._tag !== "Some" || files.length >= FILES_MAX) return { files, reads_unnamed: true }
    files.push({ path, bytes: read.value.bytes.length, sha256: read.value.sha256 })
  }
  return { files }
})

/** The first difference from what was shown: the path of a file, or words for one that nobody can be shown; `undefined` where all are. */
export const changedFile = (shown: UsedFiles, now: UsedFiles): string | undefined => {
  const differs = (one: UsedFiles, other: UsedFiles) =>
    one.files.find(({ path, sha256 }) => !other.files.some((file) => file.path === path && file.sha256 === sha256))
  return (
    (differs(shown, now) ?? differs(now, shown))?.path ??
    (shown.reads_unnamed === now.reads_unnamed ? undefined : "A file that the command names")
  )
}
