/**
 * `npm run link`: puts choirctl and choird on a person's PATH as links to the launchers in bin/. `npm run unlink` takes them away.
 * `node tools/link.ts [--remove] [--force] [--to FOLDER]`
 */
import { lstatSync, mkdirSync, readlinkSync, realpathSync, renameSync, symlinkSync, unlinkSync } from "node:fs"
import { homedir } from "node:os"
import { basename, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { executable, pathFolders } from "./personPath.ts"

const BIN = join(import.meta.dirname, "../bin")
const PROGRAMS = ["choirctl", "choird"]

/** Something stands in the way; the message says what to do. */
class Refused extends Error {}

const realpath = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** The file at the place of a link. */
const found = (link: string): "nothing" | "ours" | "folder" | "other" => {
  const stats = lstatSync(link, { throwIfNoEntry: false })
  if (stats === undefined) return "nothing"
  if (stats.isDirectory()) return "folder"
  return stats.isSymbolicLink() && realpath(link) === realpathSync(join(BIN, basename(link))) ? "ours" : "other"
}

const described = (link: string): string =>
  lstatSync(link).isSymbolicLink() ? `${link} is a link to ${readlinkSync(link)}` : `${link} is another file`

/** In one step, so that the name never points nowhere. */
const makeLink = (link: string) => {
  const partial = `${link}.${process.pid}`
  symlinkSync(join(BIN, basename(link)), partial)
  renameSync(partial, link)
}

/** The line that puts a folder on the PATH of the person's shell for good. */
const pathLine = (folder: string): string => {
  const home = homedir()
  const place = folder.startsWith(`${home}/`) ? `$HOME/${folder.slice(home.length + 1)}` : folder
  switch (basename(process.env["SHELL"] ?? "")) {
    case "fish":
      return `fish_add_path "${place}"`
    case "zsh":
      return `echo 'export PATH="${place}:$PATH"' >> ~/.zshrc`
    case "bash":
      return `echo 'export PATH="${place}:$PATH"' >> ~/.bashrc`
    default:
      return `export PATH="${place}:$PATH"    # and the same line in ~/.profile`
  }
}

/** The advice about PATH without which the names do not work. */
const pathAdvice = (folder: string): ReadonlyArray<string> => {
  const folders = pathFolders()
  const at = folders.findIndex((each) => realpath(each) === realpath(folder))
  if (at < 0) return [`${folder} is not on your PATH. To add it:`, `  ${pathLine(folder)}`, "Then open a new terminal."]
  const hidden = folders
    .slice(0, at)
    .flatMap((each) => PROGRAMS.map((name) => join(each, name)))
    .filter((path) => executable(path) && found(path) !== "ours")
  return hidden.length === 0
    ? ["Try: choirctl --version"]
    : [`These come first on your PATH and hide the links: ${hidden.join(", ")}`]
}

const link = (folder: string, force: boolean) => {
  mkdirSync(folder, { recursive: true })
  const links = PROGRAMS.map((name) => join(folder, name))
  const blocked = links.filter((path) => found(path) === "folder" || (found(path) === "other" && !force))
  if (blocked.length > 0) {
    const hint = blocked.some((path) => found(path) === "folder")
      ? "move it away, then npm run link"
      : "npm run link -- --force replaces it"
    throw new Refused(`${blocked.map(described).join("; ")}\nhint: ${hint}`)
  }
  for (const path of links) if (found(path) !== "ours") makeLink(path)
  return [`choirctl and choird are linked in ${folder}`, ...pathAdvice(folder)]
}

const unlink = (folder: string): ReadonlyArray<string> =>
  PROGRAMS.map((name) => join(folder, name)).map((path) => {
    switch (found(path)) {
      case "ours":
        unlinkSync(path)
        return `removed ${path}`
      case "nothing":
        return `${path} does not exist`
      default:
        return `left ${path}: it does not belong to this checkout`
    }
  })

try {
  const { values } = parseArgs({
    options: { force: { type: "boolean" }, remove: { type: "boolean" }, to: { type: "string" } }
  })
  const folder = resolve(values.to ?? join(homedir(), ".local/bin"))
  const lines = values.remove === true ? unlink(folder) : link(folder, values.force === true)
  process.stdout.write(`${lines.join("\n")}\n`)
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
