/**
 * Reads the tar of a backup and trusts none of it: only names that a backup has, each once and below its folder, no device and no hard
 * link, nothing larger than its limit, and in the end exactly what the manifest lists.
 */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import type { Readable } from "node:stream"
import { createGunzip } from "node:zlib"
import { Effect, Result, Runtime, Schema } from "effect"
import type { Extract, Header } from "tar-stream"
import {
  ARCHIVE_FORMAT,
  ARCHIVED_FILES_MAX,
  Format,
  FORMAT,
  FORMAT_BYTES_MAX,
  Manifest,
  MANIFEST,
  type Member,
  MEMBERS_BYTES_MAX,
  type Place,
  placeOf,
  WORKSPACE_ENTRIES_MAX
} from "./manifest.ts"

/** Members of one file: what workspaces may have, archived sessions, and everything else. */
const MEMBERS_MAX = WORKSPACE_ENTRIES_MAX + ARCHIVED_FILES_MAX + 2000
const LINK_CHARS_MAX = 4096
const READ_BYTES = 256 * 1024

/** The file is not a whole backup of a home. Nothing was changed because of it. */
export class ArchiveUnusable extends Schema.TaggedError<ArchiveUnusable>()("ArchiveUnusable", {
  file: Schema.String,
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get message() {
    return `${this.file} cannot be used as a backup: ${this.problem}`
  }
}

/** Where the members go. Each function throws what the system says. */
export interface Destination {
  /** Opens a new file; each piece is written where the last one ended. */
  file(name: string, mode: number): { write(piece: Uint8Array): void; end(mtime: Date): void }
  folder(name: string): void
  link(name: string, target: string): void
}

/** For a backup that is only checked. */
export const nowhere: Destination = {
  file: () => ({ write: () => undefined, end: () => undefined }),
  folder: () => undefined,
  link: () => undefined
}

/** One member, with its contents to be read. */
type Entry = Extract extends AsyncIterable<infer A> ? A : never

class Refused extends Error {}
const refuse = (problem: string): never => {
  throw new Refused(problem)
}

const strict = { onExcessProperty: "error" } as const
const decodeFormat = Schema.decodeUnknownResult(Schema.fromJsonString(Format), strict)
const decodeManifest = Schema.decodeUnknownResult(Schema.fromJsonString(Manifest), strict)

const checkFormat = (text: string) => {
  const found = decodeFormat(text)
  if (Result.isFailure(found)) return refuse("it does not name its format")
  const { choir, format } = found.success
  if (format > ARCHIVE_FORMAT)
    refuse(`it was made by a later Choir (${choir.slice(0, 40)}, format ${format}): restore it with that version`)
  return undefined
}

const MODE = 0o777

const TYPES: Readonly<Record<string, Member["type"]>> = { file: "file", directory: "folder", symlink: "link" }

/** The members seen so far, and a check of the next one. */
export const makeChecker = () => {
  let bytes = 0
  const members = new Map<string, Member>()
  const folders = new Set<string>()
  return {
    members,
    /** The member that a header announces, or a refusal. */
    admit: (name: string, { linkname, size, type }: Header): { readonly place: Place } & Omit<Member, "sha256"> => {
      const shown = JSON.stringify(name.slice(0, 200))
      const place = placeOf(name) ?? refuse(`it has a member that no backup has: ${shown}`)
      const kind = TYPES[type] ?? refuse(`${shown} is neither a file nor a folder`)
      if (kind !== "file" && !place.in_workspace) refuse(`${shown} is not a file`)
      if (kind !== "file" && size !== 0) refuse(`${shown} has contents, although it is not a file`)
      if (!(size >= 0 && size <= place.bytes_max)) refuse(`${shown} is larger than ${place.bytes_max} bytes`)
      if (kind === "link" && ((linkname ?? "") === "" || linkname.length > LINK_CHARS_MAX))
        refuse(`the link ${shown} has no target, or one that is too long`)
      if (members.has(name)) refuse(`it has ${shown} twice`)
      if (members.size >= MEMBERS_MAX) refuse(`it has more than ${MEMBERS_MAX} members`)
      bytes += size
      if (bytes > MEMBERS_BYTES_MAX) refuse(`its members have more than ${MEMBERS_BYTES_MAX} bytes together`)
      // A folder that was not made here could be a link, and what is written below it would land elsewhere.
      const parent = name.slice(0, name.lastIndexOf("/"))
      if (place.in_workspace && parent.split("/").length > 2 && !folders.has(parent))
        refuse(`${shown} is in a folder that the file does not contain`)
      if (kind === "folder") folders.add(name)
      return { name, type: kind, bytes: size, place }
    },
    /** The manifest, once it lists what was seen and nothing else. */
    prove: (text: string): Manifest => {
      const found = decodeManifest(text)
      if (Result.isFailure(found)) return refuse("its manifest is not one that Choir writes")
      const { success: manifest } = found
      if (manifest.members.length !== members.size) refuse("its manifest does not list what it holds")
      for (const listed of manifest.members) {
        const seen = members.get(listed.name)
        if (seen === undefined) refuse(`${JSON.stringify(listed.name.slice(0, 200))} is missing`)
        else if (
          seen.sha256 !== listed.sha256 ||
          seen.bytes !== listed.bytes ||
          seen.type !== listed.type ||
          (listed.mode !== undefined && seen.mode !== listed.mode)
        )
          refuse(`${JSON.stringify(listed.name.slice(0, 200))} is damaged`)
      }
      return manifest
    }
  }
}

const textOf = async (entry: Entry, bytes_max: number) => {
  if (entry.header.type !== "file" || entry.header.size > bytes_max) refuse("it does not name its format")
  const pieces: Array<Uint8Array> = []
  for await (const piece of entry) pieces.push(piece as Uint8Array)
  return Buffer.concat(pieces).toString("utf8")
}

const save = async (entry: Entry, member: Omit<Member, "sha256">, destination: Destination): Promise<Member> => {
  const hash = createHash("sha256")
  const { linkname, mode, mtime } = entry.header
  if (member.type === "folder") destination.folder(member.name)
  if (member.type === "link") {
    hash.update(linkname)
    destination.link(member.name, linkname)
  }
  if (member.type === "file") {
    const file = destination.file(member.name, mode & MODE)
    try {
      for await (const piece of entry) {
        hash.update(piece as Uint8Array)
        file.write(piece as Uint8Array)
      }
    } finally {
      file.end(mtime)
    }
  } else entry.resume()
  const { bytes, name, type } = member
  return { name, type, ...(type === "file" ? { mode } : {}), bytes, sha256: hash.digest("hex") }
}

const readAll = async (source: Readable, entries: AsyncIterable<Entry>, destination: Destination) => {
  const checker = makeChecker()
  let manifest: Manifest | undefined
  let first = true
  for await (const entry of entries) {
    const name = entry.header.name.replace(/\/$/u, "")
    if (manifest !== undefined) return refuse("it has data after its end")
    if (first) {
      if (name !== FORMAT) return refuse("it is not a backup of a home")
      checkFormat(await textOf(entry, FORMAT_BYTES_MAX))
      first = false
      continue
    }
    const admitted = checker.admit(name, entry.header)
    if (name === MANIFEST) manifest = checker.prove(await textOf(entry, admitted.place.bytes_max))
    else checker.members.set(name, await save(entry, admitted, destination))
  }
  source.resume()
  return manifest ?? refuse("it is truncated")
}

const reasonOf = (cause: unknown) => {
  if (cause instanceof Refused) return cause.message
  const code: unknown = Reflect.get(Object(cause), "code")
  if (code === "ENOENT") return "there is no such file"
  if (code === "Z_BUF_ERROR") return "it is truncated"
  if (typeof code === "string" && code.startsWith("Z_")) return "it is not gzip, or damaged"
  const text = cause instanceof Error ? cause.message : String(cause)
  return /tar header|Unexpected end|Invalid header|exceeds max/iu.test(text) ? "it is not a tar, or damaged" : text
}

/** Reads a backup to its end, hands its members over as they come, and answers its manifest once everything has been proved. */
export const readArchive = Effect.fn("ArchiveReader.read")(function* (file: string, destination: Destination) {
  const { extract } = yield* Effect.promise(() => import("tar-stream"))
  return yield* Effect.tryPromise({
    try: async (signal) => {
      const entries = extract()
      const source = createReadStream(file, { highWaterMark: READ_BYTES, signal })
      const unpacked = createGunzip({ chunkSize: READ_BYTES })
      // No `pipeline`: it lets go of the last stream once all is written, and zlib sees only then that the end is missing.
      for (const stream of [source, unpacked]) stream.on("error", (error: Error) => entries.destroy(error))
      source.pipe(unpacked).pipe(entries)
      try {
        return await readAll(unpacked, entries, destination)
      } finally {
        for (const stream of [source, unpacked, entries]) stream.destroy()
      }
    },
    catch: (cause) => new ArchiveUnusable({ file, problem: reasonOf(cause) })
  })
})
