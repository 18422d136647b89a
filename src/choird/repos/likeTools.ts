/** Tools whose names differ in case and separators alone. Models and their servers write those otherwise, so that a call could mean either. Pure. */
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { plainToolName } from "#src/shared/image/plainToolName.ts"
import type { RepoProblem } from "./Tree.ts"

/** The tools that an image takes of one repository. */
interface RepoTools {
  readonly label: string
  readonly names: ReadonlyArray<string>
}

/** A problem for each tool that is like one before it; built-in ones are before all others. A tool of the same name is refused elsewhere. */
export const likeTools = (repos: ReadonlyArray<RepoTools>): ReadonlyArray<RepoProblem> => {
  const first = new Map(BUILT_IN_TOOLS.map((name) => [plainToolName(name), `the built-in tool ${name}`]))
  return repos.flatMap(({ label, names }) =>
    names.flatMap((name) => {
      const plain = plainToolName(name)
      const other = first.get(plain)
      if (other === undefined) first.set(plain, `the tool ${name} of the ${label}`)
      return other === undefined || BUILT_IN_TOOLS.includes(name)
        ? []
        : [
            {
              repo: label,
              path: `tools/${name}.json`,
              reason: `its name and that of ${other} differ in separators alone, which models mix up: rename one`
            }
          ]
    })
  )
}
