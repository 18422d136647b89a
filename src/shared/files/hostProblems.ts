/** Things that a host lacks and Choir needs, each found by trying it, with the fix in words: choird says it at its start, choirctl doctor at any time. */
import { spawnSync } from "node:child_process"
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, rmdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { HOME_FOLDERS } from "#src/shared/files/homeFolder.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { bytesText, MIB } from "#src/shared/text/bytesText.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"

/** A problem of the host and its fix. */
export interface HostProblem {
  /** The name of the check. */
  readonly name: string
  readonly problem: string
  readonly fix: string
}

/** A socket's path has 107 bytes at most, and those of agents lie 42 bytes below the home. */
export const HOME_BYTES_MAX = 65

/** Open files that choird needs: the embedded database alone opens some hundred. */
const OPEN_FILES_MIN = 256

/** A file that choird must be able to write: the embedded database has a log of such files, and a backup is one. */
const FILE_BYTES_MIN = 256 * MIB

/** No clock of a host on which Choir runs is earlier. */
const CLOCK_MS_MIN = Date.UTC(2026, 0, 1)

/** How long a program of two words may take. */
const TRY_MS_MAX = 10_000

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "is not a folder",
  EACCES: "belongs to another user, who does not let this one write there",
  EPERM: "belongs to another user, who does not let this one write there",
  EROFS: "is on a disk that is read-only",
  ENOSPC: "is on a disk that is full",
  EDQUOT: "is on a disk where this user's quota is used up"
}

/** The system's refusal of a folder, as the predicate of a sentence. */
export const folderWords = (error: unknown): string =>
  WORDS[codeOf(error) ?? ""] ?? `cannot be used (${codeOf(error) ?? String(error)})`

const TEMPORARY_FIXES: Readonly<Record<string, (folder: string) => string>> = {
  ENOENT: (folder) => `mkdir -p ${shellQuoted(folder)}, or `,
  ENOSPC: () => "free some space there, or ",
  EDQUOT: () => "free some space there, or "
}

/** The folder for temporary files. git, the browser and trials need one. */
export const temporaryProblem = (folder: string = tmpdir()): HostProblem | undefined => {
  try {
    rmdirSync(mkdtempSync(join(folder, "choir-try-")))
    return undefined
  } catch (error) {
    const place = process.env["TMPDIR"] === undefined ? folder : `${folder}, which TMPDIR names,`
    return {
      name: "temporary files",
      problem: `the folder for temporary files, ${place} ${folderWords(error)}`,
      fix: `${TEMPORARY_FIXES[codeOf(error) ?? ""]?.(folder) ?? ""}set TMPDIR to a folder that this user may write to`
    }
  }
}

/** A limit of this process, where the system tells one. */
const limitOf = (name: string): number | undefined => {
  try {
    const limit = new RegExp(String.raw`^${name}\s+(\d+)`, "mu").exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** Node raises its own limit to what the system allows. */
export const openFilesProblem = (limit = limitOf("Max open files")): HostProblem | undefined =>
  limit === undefined || limit >= OPEN_FILES_MIN
    ? undefined
    : {
        name: "open files",
        problem: `a process may have only ${limit} files open here, and choird needs ${OPEN_FILES_MIN}`,
        fix: "ulimit -n 4096 in the shell that starts choird, or LimitNOFILE= in its unit"
      }

export const fileSizeProblem = (limit = limitOf("Max file size")): HostProblem | undefined =>
  limit === undefined || limit >= FILE_BYTES_MIN
    ? undefined
    : {
        name: "large files",
        problem: `a process may write files of at most ${bytesText(limit)} here, and choird needs ${bytesText(FILE_BYTES_MIN)}`,
        fix: "ulimit -f unlimited in the shell that starts choird, or LimitFSIZE= in its unit"
      }

/** A home, or a folder of it that is there, in which this user may not write. @param home its real path. */
export const homeWriteProblem = (home: string): HostProblem | undefined => {
  for (const path of [home, ...HOME_FOLDERS.map((folder) => join(home, folder))]) {
    try {
      accessSync(path, constants.W_OK | constants.X_OK)
    } catch (error) {
      if (codeOf(error) === "ENOENT") continue
      return {
        name: "home",
        problem: `${path} ${folderWords(error)}`,
        fix:
          codeOf(error) === "EROFS"
            ? "a home must be on a disk that choird's user may write to"
            : `give the whole home to the user that runs choird: chown -R ${process.getuid?.() ?? 0} ${shellQuoted(home)}`
      }
    }
  }
  return undefined
}

/** Choir finds its processes and keeps links out of paths by way of /proc. */
export const procProblem = (place = "/proc/self/fd"): HostProblem | undefined =>
  existsSync(place)
    ? undefined
    : { name: "proc", problem: "/proc is not mounted", fix: "mount -t proc proc /proc, or start choird where it is" }

/** A home is locked by the system's program of that name. */
export const flockProblem = (program = "flock"): HostProblem | undefined => {
  const { error } = spawnSync(program, ["--version"], { stdio: "ignore", timeout: TRY_MS_MAX })
  return codeOf(error) === "ENOENT"
    ? {
        name: "flock",
        problem: `the program ${program} is not in PATH`,
        fix: "apt install util-linux, or correct PATH"
      }
    : undefined
}

export const clockProblem = (now_ms: number): HostProblem | undefined =>
  now_ms >= CLOCK_MS_MIN
    ? undefined
    : {
        name: "clock",
        problem: `the clock of this host says ${new Date(now_ms).toISOString().slice(0, 10)}, which is before Choir existed: certificates, schedules and memories would all be wrong`,
        fix: "set it: timedatectl set-ntp true, or date -s"
      }

/** @param home its real path. */
export const longHomeProblem = (home: string): HostProblem | undefined => {
  const bytes = Buffer.byteLength(home)
  return bytes <= HOME_BYTES_MAX
    ? undefined
    : {
        name: "home",
        problem: `the path ${home} has ${bytes} bytes, and that of a home at most ${HOME_BYTES_MAX}, since the system limits the paths of the sockets in it`,
        fix: "choose a home with a shorter path"
      }
}

/** Whether the system refuses to run a program in a folder because of where it is. One that cannot be tried is not refused. */
const isRefused = (folder: string): boolean => {
  try {
    const place = mkdtempSync(join(folder, ".try-"))
    try {
      const program = join(place, "program")
      writeFileSync(program, "#!/bin/sh\nexit 0\n", { mode: 0o700 })
      return codeOf(spawnSync(program, { stdio: "ignore", timeout: TRY_MS_MAX }).error) === "EACCES"
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  } catch {
    return false
  }
}

/** An agent's tools are programs in its image, which is a folder of the home. */
export const noexecProblem = (folder: string): HostProblem | undefined => {
  if (!isRefused(folder)) return undefined
  return {
    name: "programs",
    problem: `programs in ${folder} cannot be run, as on a disk that is mounted noexec: tools of agents that are programs of their own do not work`,
    fix: "mount that disk with exec, or choose a home on another one"
  }
}

/** A time zone that Node does not know counts as UTC, without a word. */
export const timeZoneProblem = (name = process.env["TZ"]): HostProblem | undefined => {
  // A path, as some systems have it, is the host's own zone.
  if (name === undefined || name === "" || /^:?\//u.test(name)) return undefined
  try {
    new Intl.DateTimeFormat("en", { timeZone: name.replace(/^:/u, "") }).format(0)
    return undefined
  } catch {
    return {
      name: "time zone",
      problem: `TZ is ${JSON.stringify(name)}, which is not the name of a time zone: times are in UTC`,
      fix: "set TZ to a name such as Europe/Berlin, or leave it out"
    }
  }
}

/** Problems that Choir works with and some of its work does not, for the log and for `status`. @param home its real path. */
export const hostWarnings = (home: string): ReadonlyArray<string> =>
  [noexecProblem(join(home, "images")), timeZoneProblem()].flatMap((found) =>
    found === undefined ? [] : [`${found.problem}; to fix it: ${found.fix}`]
  )
