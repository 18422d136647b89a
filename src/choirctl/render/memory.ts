/** How agents' memory is searched, in a line. */
import type { MemoryStatus } from "#schema/SystemApi.ts"
import { safeLine, span } from "#src/choirctl/terminal/text.ts"

const texts = (count: number) => (count === 1 ? "1 text waits" : `${count} texts wait`)

const percent = (done: number, total: number) => (total === 0 ? 100 : Math.floor((100 * done) / total))

/** The model and what waits for it; while it fails, that searches go by words alone, and why. */
export const searchText = ({ failing_ms, model, problem, reembedding, waiting }: MemoryStatus): string => {
  if (model === null) return "searched by words alone: no embedding model is configured"
  const waits = waiting === 0 ? [] : [`${texts(waiting)} for a vector`]
  const change =
    reembedding === undefined
      ? []
      : [
          `${reembedding.done} of ${reembedding.total} texts (${percent(reembedding.done, reembedding.total)} %) have vectors of it, until then those of the earlier model are searched`
        ]
  const since = failing_ms === undefined ? "" : ` for ${span(failing_ms)}`
  const head =
    problem === undefined
      ? `searched by words and by ${safeLine(model)}`
      : `searched by words alone${since}, since ${safeLine(model)} fails: ${safeLine(problem)}`
  return [head, ...waits, ...change].join("; ")
}
