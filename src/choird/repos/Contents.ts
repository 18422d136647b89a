/** What of a repository makes an image: its paths with a digest each, small enough to be kept when the files are not. */
import { Schema } from "effect"
import { digestOf, type RepoFile } from "./Tree.ts"

/** Paths and, for each, the SHA-256 of its content and whether it is executable. */
export const Contents = Schema.Record(Schema.String, Schema.String)
export type Contents = typeof Contents.Type

/** Whatever else a repository holds, no image has it. */
const MATTERS = /^(?:tools|skills|identity)\/|^Dockerfile(?:\.base)?$/u

export const contentsOf = (files: ReadonlyArray<RepoFile>): Contents =>
  Object.fromEntries(
    files
      .filter(({ path }) => MATTERS.test(path))
      .map((file) => [file.path, `${digestOf(file)}${file.executable ? " x" : ""}`])
  )
