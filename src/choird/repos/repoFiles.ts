/** Files of a repository as the merge reads them. */
import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import { isHeld, type RepoFile } from "./Tree.ts"

/** A repository's files, and its name in problems. */
export interface LabelledFiles {
  readonly label: string
  readonly files: ReadonlyArray<RepoFile>
}

/** The files of a folder, by their paths in it. */
export const within = (files: ReadonlyArray<RepoFile>, folder: string): ReadonlyArray<RepoFile> =>
  files.flatMap((file) =>
    file.path.startsWith(`${folder}/`) && !file.path.endsWith("/.gitkeep")
      ? [{ ...file, path: file.path.slice(folder.length + 1) }]
      : []
  )

/** A `.json` file of the folder itself. */
export const isManifest = ({ path }: RepoFile) => path.endsWith(".json") && !path.includes("/")

/** The text of a file that choird reads, or why it cannot. */
export const textOf = (file: RepoFile, bytesMax: number): Result.Result<string, string> => {
  if (!isHeld(file) || file.bytes.length > bytesMax) return Result.fail(`larger than ${bytesMax} bytes`)
  return isUtf8(file.bytes) ? Result.succeed(Buffer.from(file.bytes).toString("utf8")) : Result.fail("not UTF-8")
}
