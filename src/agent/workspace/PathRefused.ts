/** Why a path of the workspace cannot be used, as a sentence for the model that named it. */
import { Schema } from "effect"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { WORKSPACE_PATH_BYTES_MAX } from "#src/shared/image/lockKey.ts"

/** A file of the workspace that a file tool reads or writes whole. */
export const WORKSPACE_FILE_BYTES_MAX = 16 * 1024 * 1024

const NAME_SHOWN_CHARS = 200

const SENTENCES = {
  outside: "leads outside the workspace. Give a path inside it, relative to its root.",
  home: "begins with ~, which no shell replaces here. Give a path inside the workspace, relative to its root, such as notes.txt.",
  malformed: "is not a path: it is empty, or holds a NUL byte or an unpaired surrogate.",
  too_long: `is longer than a path of ${WORKSPACE_PATH_BYTES_MAX} bytes or a name of 255 bytes may be.`,
  not_found: "does not exist in the workspace.",
  twin: "does not exist, but a name that looks the same does. Use that one.",
  link: "is a symbolic link or leads through one, which file tools never follow. Name the file itself, or use a command.",
  hard_link: "is a file with a second name (a hard link), which file tools do not open. Use a command for it.",
  folder: "is a folder, not a file.",
  not_a_folder: "leads through a file, or is one, where a folder is needed.",
  special: "is not a regular file.",
  too_large: `is larger than the ${WORKSPACE_FILE_BYTES_MAX} bytes that file tools take. Use a command for a part of it.`,
  denied: "may not be opened: permission was denied.",
  no_space: "cannot be written: there is no space left.",
  failed: "cannot be used: the file system failed. Try again, or look at it with a command."
} as const

const REASON_OF_CODE: Readonly<Record<string, keyof typeof SENTENCES>> = {
  ENOENT: "not_found",
  ELOOP: "link",
  EMLINK: "hard_link",
  EISDIR: "folder",
  ENOTDIR: "not_a_folder",
  ENODEV: "special",
  ENXIO: "special",
  EFBIG: "too_large",
  ENAMETOOLONG: "too_long",
  EACCES: "denied",
  EPERM: "denied",
  EROFS: "denied",
  ENOSPC: "no_space",
  EDQUOT: "no_space"
}

/** A name as a string of JSON, letter by letter where its signs are not those that a model would write. */
const spelled = (path: string): string => {
  const odd = path.normalize("NFC") === path ? /[\p{C}\p{Zl}\p{Zp}]/gu : /[\p{C}\p{M}\p{Zl}\p{Zp}\u{1100}-\u{11ff}]/gu
  return JSON.stringify(path).replaceAll(odd, (sign) =>
    [...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")
  )
}

export class PathRefused extends Schema.TaggedError<PathRefused>()("PathRefused", {
  path: Schema.String,
  reason: Schema.Literals(Object.keys(SENTENCES) as Array<keyof typeof SENTENCES>),
  /** The file system's code, when it was the one to refuse. */
  code: Schema.optionalKey(Schema.String),
  /** A path that exists and may have been meant. */
  like: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const shown = JSON.stringify(this.path.slice(0, NAME_SHOWN_CHARS))
    const like = this.like === undefined ? "" : ` There is ${spelled(this.like)}.`
    return `${shown} ${SENTENCES[this.reason]}${this.reason === "failed" && this.code ? ` (${this.code})` : ""}${like}`
  }
}

/** Translates an error of the file system. */
export const refusedBySystem = (path: string, error: unknown): PathRefused => {
  const code = codeOf(error)
  return new PathRefused({
    path,
    reason: (code === undefined ? undefined : REASON_OF_CODE[code]) ?? "failed",
    ...(code === undefined ? {} : { code })
  })
}
