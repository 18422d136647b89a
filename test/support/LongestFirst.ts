/**
 * The order of the files of a run. Vitest takes one project after the other, and in each the largest files first where it has seen none of
 * them run. A file that takes minutes by itself would begin near the end, and all other workers would wait for it: it begins first.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files of minutes, the longest first. */
export const LONGEST = ["living/fortnight", "simulation/mutants", "simulation/seeds", "choird/workers/webBrowse"].map(
  (name) => `/test/${name}.test.ts`
)

const placeOf = ({ moduleId }: TestSpecification): number => {
  const place = LONGEST.findIndex((name) => moduleId.endsWith(name))
  return place === -1 ? LONGEST.length : place
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: ReadonlyArray<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort([...files])
    return sorted.toSorted((one, other) => placeOf(one) - placeOf(other))
  }
}
