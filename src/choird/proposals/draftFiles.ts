/** The files of a proposed tool or skill in the agent's repository, or everything that is wrong with them. Pure. */
import { Result } from "effect"
import { type HeldFile, pathProblem, type RepoFile } from "#src/choird/repos/Tree.ts"
import { toolExecutable } from "#src/shared/image/toolManifest.ts"
import type { Proposal } from "#src/choird/approvals/Proposal.ts"

/** One file that a proposal of a tool brings along. */
const PROPOSED_FILE_BYTES_MAX = 48 * 1024

/** `isDraft`: a manifest without a program, which a person has to write; nothing is built from it. */
export interface Draft {
  readonly files: ReadonlyArray<HeldFile>
  readonly isDraft: boolean
}

/** Plain names only, so that a path is what it looks like. */
const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/u

const file = (path: string, text: string, executable = false): HeldFile => ({
  path,
  executable,
  bytes: Buffer.from(text, "utf8")
})

const jsonFile = (path: string, value: unknown) => file(path, `${JSON.stringify(value, undefined, 2)}\n`)

/** Paths of which one would be a file where another needs a folder: a commit of them would leave out the file without a word. */
export const clashes = (paths: Iterable<string>): ReadonlyArray<string> => {
  // With the separator before every other character, all that is below a file follows it.
  const all = [...new Set(paths)].map((path) => path.replaceAll("/", "\0")).sort()
  let file: string | undefined
  return all.flatMap((path) => {
    if (file !== undefined && path.startsWith(`${file}\0`)) return [path.replaceAll("\0", "/")]
    file = path
    return []
  })
}

const fileProblems = (name: string, { bytes, path }: HeldFile): ReadonlyArray<string> => {
  const problem = pathProblem(path)
  return [
    ...(PLAIN.test(path) ? [] : ["a path may hold only a-z, A-Z, 0-9, '.', '_', '-' and '/', and leads nowhere else"]),
    ...(path === `tools/${name}` || path.startsWith(`tools/${name}/`)
      ? []
      : [`${JSON.stringify(path)} is outside tools/${name}, and a tool may not add other files`]),
    ...(problem === undefined ? [] : [`${path}: ${problem}`]),
    ...(bytes.length > PROPOSED_FILE_BYTES_MAX ? [`${path} is larger than ${PROPOSED_FILE_BYTES_MAX} bytes`] : [])
  ]
}

const toolDraft = (
  { tool, written }: Extract<Proposal, { kind: "tool" }>,
  existing: ReadonlyArray<Pick<RepoFile, "path">>
): Result.Result<Draft, string> => {
  const { llm, runtime } = tool.manifest
  const { name } = llm
  const unit = (path: string) => path === `tools/${name}` || path.startsWith(`tools/${name}/`)
  const executable = toolExecutable("agent", runtime.exec_path)
  const program = executable === undefined ? undefined : `tools/${executable}`
  const brought = (tool.files ?? []).map(({ content, executable = false, path }) =>
    file(path, content, executable || path === program)
  )
  const known = existing.filter(({ path }) => unit(path))
  const hasProgram = [...brought, ...known].some(({ path }) => path === program)
  const hasSources = [...brought, ...known].some(({ path }) => path.startsWith(`tools/${name}/`))
  const isDraft = !hasProgram && !hasSources
  const manifest = jsonFile(isDraft ? `tools/${name}/manifest.json` : `tools/${name}.json`, written)
  const files = [...brought, manifest]
  const twice = files.length - new Set(files.map(({ path }) => path.toLowerCase())).size
  const problems = [
    ...(name === "choir" || name.startsWith("choir.")
      ? ["names that begin with choir. are reserved for built-in tools"]
      : []),
    ...(program !== undefined && unit(program)
      ? []
      : [`runtime.exec_path must be the tool's own: ${name}, or ${name}/...`]),
    ...brought.flatMap((each) => fileProblems(name, each)),
    ...(twice > 0 ? ["two files have the same path"] : []),
    ...clashes([...existing, ...files].map(({ path }) => path)).map((path) => `${path} is below a file`)
  ]
  return problems.length > 0 ? Result.fail([...new Set(problems)].join("; ")) : Result.succeed({ files, isDraft })
}

const skillDraft = (
  { name, skill }: Extract<Proposal, { kind: "skill" }>,
  existing: ReadonlyArray<Pick<RepoFile, "path">>
): Result.Result<Draft, string> => {
  const files = [jsonFile(`skills/${name}.json`, skill.spec)]
  const [clash] = clashes([...existing, ...files].map(({ path }) => path))
  return clash === undefined ? Result.succeed({ files, isDraft: false }) : Result.fail(`${clash} is below a file`)
}

/** Every path that the draft may replace. */
export const draftPaths = (proposal: Extract<Proposal, { kind: "tool" | "skill" }>): ReadonlySet<string> => {
  if (proposal.kind === "skill") return new Set([`skills/${proposal.name}.json`])
  const { files = [], manifest } = proposal.tool
  const unit = `tools/${manifest.llm.name}`
  return new Set([`${unit}.json`, `${unit}/manifest.json`, ...files.map(({ path }) => path)])
}

/** @param existing the paths of the repository that they would be added to. */
export const draftFiles = (
  proposal: Extract<Proposal, { kind: "tool" | "skill" }>,
  existing: ReadonlyArray<Pick<RepoFile, "path">>
): Result.Result<Draft, string> =>
  proposal.kind === "tool" ? toolDraft(proposal, existing) : skillDraft(proposal, existing)

/** The repository with the files in place. */
export const withFiles = (
  existing: ReadonlyArray<RepoFile>,
  files: ReadonlyArray<RepoFile>
): ReadonlyArray<RepoFile> => {
  const paths = new Set(files.map(({ path }) => path))
  return [...existing.filter(({ path }) => !paths.has(path)), ...files]
}
