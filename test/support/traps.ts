/** What an agent could leave in its workspace to have something deleted elsewhere, or nothing at all (R41). */
import { spawnSync } from "node:child_process"
import {
  chmodSync,
  chownSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"

/** So many of them are more than the 4,096 bytes of a path. */
const DEEP = 320
const DEEP_NAME = "deep-deep-deep"

const NAMES = [
  "line\nfeed",
  "-delete",
  "-rf",
  "$(touch pwned)",
  "`id`",
  "a b\tc",
  "\u{1b}[2J",
  "..\u{202e}",
  "%2e%2e",
  "…",
  "\\",
  '"',
  "'",
  "{}",
  ";",
  "*",
  "x".repeat(255)
]

type Trap = (folder: string, outside: string, uid: number) => void

const shell = (cwd: string, script: string) => {
  const { status, stderr } = spawnSync("sh", ["-c", script], { cwd, encoding: "utf8" })
  if (status !== 0) throw new Error(stderr)
}

/** Each makes things below `folder`, whose owner they get afterwards. */
const TRAPS: Readonly<Record<string, Trap>> = {
  "links to a file, a folder, / and themselves": (folder, outside) => {
    symlinkSync(join(outside, "file"), join(folder, "file-link"))
    symlinkSync(outside, join(folder, "folder-link"))
    symlinkSync("/", join(folder, "root-link"))
    symlinkSync("..", join(folder, "up"))
    symlinkSync("self", join(folder, "self"))
    symlinkSync("../../../../../../etc/passwd", join(folder, "relative"))
    symlinkSync("/proc/self/root/etc", join(folder, "proc"))
  },
  "a second name of a file outside": (folder, outside) => linkSync(join(outside, "file"), join(folder, "hard")),
  "a fifo, a socket and a device": (folder) => {
    shell(folder, "mkfifo fifo")
    const listen = `require("node:net").createServer().listen("socket", () => process.kill(process.pid, "SIGKILL"))`
    spawnSync(process.execPath, ["-e", listen], { cwd: folder })
    if (!readdirSync(folder).includes("socket")) throw new Error("no socket was made")
    if (process.getuid?.() === 0) shell(folder, "mknod null c 1 3")
  },
  "folders below the longest path": (folder, _, uid) => {
    // Nobody could give them away afterwards by their paths.
    chownSync(folder, uid, uid)
    const descend = `for (let i = 0; i < ${DEEP}; i++) { require("node:fs").mkdirSync("${DEEP_NAME}"); process.chdir("${DEEP_NAME}") }`
    const { status } = spawnSync(process.execPath, ["-e", descend], { cwd: folder, uid, gid: uid })
    if (status !== 0) throw new Error("no deep folder was made")
  },
  "names that a shell, a terminal or a decoder reads": (folder) => {
    for (const name of NAMES) writeFileSync(join(folder, name), name)
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe, 0x2e, 0x2e])]), "")
    mkdirSync(join(folder, "dir\n", "..."), { recursive: true })
  },
  "files larger than a disk, set-user-id and read-only": (folder) => {
    writeFileSync(join(folder, "sparse"), "")
    truncateSync(join(folder, "sparse"), 1 << 30)
    writeFileSync(join(folder, "suid"), "", { mode: 0o4755 })
    mkdirSync(join(folder, "locked"))
    writeFileSync(join(folder, "locked", "file"), "", { mode: 0o400 })
    chmodSync(join(folder, "locked"), 0o500)
  },
  "folders that nobody may enter": (folder) => {
    mkdirSync(join(folder, "shut", "shut", "shut"), { recursive: true })
    writeFileSync(join(folder, "shut", "shut", "shut", "file"), "")
    for (const path of ["shut/shut/shut", "shut/shut", "shut"]) chmodSync(join(folder, path), 0)
  },
  "many files": (folder) => {
    for (let i = 0; i < 1000; i++) writeFileSync(join(folder, String(i)), "")
  }
}

/** Everything, the links themselves, that `find` reaches and that has no other name. */
const give = (folder: string, uid: number) =>
  spawnSync("find", [
    "-P",
    folder,
    "(",
    "-type",
    "d",
    "-o",
    "-links",
    "1",
    ")",
    "-exec",
    "chown",
    "-h",
    `${uid}:${uid}`,
    "{}",
    "+"
  ])

/** Something outside of a workspace that has to stay as it is. */
export const makeOutside = (outside: string) => {
  mkdirSync(join(outside, "folder"), { recursive: true })
  for (const name of ["file", "folder/file"]) writeFileSync(join(outside, name), "precious")
  return () =>
    [outside, join(outside, "folder")]
      .map((path) => [readdirSync(path), statSync(path).mode, statSync(path).uid])
      .concat(
        ["file", "folder/file"].map((name) => {
          const { gid, mode, uid } = statSync(join(outside, name))
          return [[readFileSync(join(outside, name), "utf8")], mode, uid, gid]
        })
      )
}

/** Sets every trap in a folder of its own, all of them owned by `uid`. */
export const setTraps = (workspace: string, outside: string, uid: number): ReadonlyArray<string> => {
  const names = Object.keys(TRAPS)
  for (const [index, name] of names.entries()) {
    const folder = join(workspace, `${uid}-${index}`)
    mkdirSync(folder)
    TRAPS[name]?.(folder, outside, uid)
    if (process.getuid?.() === 0) give(folder, uid)
  }
  return names
}

/** Folders of one owner in folders of another, in turn. */
export const setLayers = (workspace: string, uids: ReadonlyArray<number>) => {
  let folder = workspace
  for (const uid of uids) {
    folder = join(folder, "layer")
    mkdirSync(folder, { mode: 0o700 })
    writeFileSync(join(folder, "file"), "")
    chownSync(folder, uid, uid)
    lchownSync(join(folder, "file"), uid, uid)
  }
}
