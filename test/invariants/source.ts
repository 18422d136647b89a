/** The files of the repository as a test is to see them: with the mutation that it runs for, if there is one. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { MUTATIONS, mutated } from "./mutations.ts"
import { MUTATION_ID } from "./underTest.ts"

export const ROOT = join(import.meta.dirname, "../..")

const mutation = MUTATIONS.find(({ id }) => id === MUTATION_ID)

/** @param path from the repository's root. */
export const sourceOf = (path: string): string => {
  const text = readFileSync(join(ROOT, path), "utf8")
  return mutation?.file === path ? mutated(text, mutation) : text
}
