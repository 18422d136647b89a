/** `npm run bench`: each figure is beside its floor of the same run. */
import { writeFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect } from "effect"
import { backup } from "./backup.ts"
import { commandLine } from "./commandLine.ts"
import { container } from "./container.ts"
import { conversation } from "./conversation.ts"
import { firstWords } from "./firstWords.ts"
import { history } from "./history.ts"
import { locks } from "./locks.ts"
import { longWork, longWorkWithProviders } from "./longWork.ts"
import { memoryEmbedding } from "./memoryEmbedding.ts"
import { memorySearch } from "./memorySearch.ts"
import { programOptions } from "../test/support/programOptions.ts"
import type { Row } from "./Row.ts"
import { size } from "./size.ts"
import { startup } from "./startup.ts"
import { steps } from "./steps.ts"
import { verbs } from "./verbs.ts"
import { telegramSigns } from "./telegramSigns.ts"
import { visible } from "./visible.ts"

const BENCHMARKS: ReadonlyArray<{
  readonly ids: ReadonlyArray<string>
  /** Too long for every run: only when it is named. */
  readonly named?: true
  readonly run: Effect.Effect<ReadonlyArray<Row>, unknown>
}> = [
  { ids: ["P1", "P2", "P3", "R61"], run: steps },
  { ids: ["P4", "P5", "P9"], run: conversation },
  { ids: ["P5"], run: firstWords },
  { ids: ["P5"], run: telegramSigns },
  { ids: ["P6"], run: startup },
  { ids: ["P6"], run: container },
  { ids: ["P7"], run: commandLine },
  { ids: ["P8"], run: verbs },
  { ids: ["P10"], run: locks },
  { ids: ["A2", "A3"], run: longWork },
  { ids: ["A2", "A3"], named: true, run: longWorkWithProviders },
  { ids: ["P11", "R63"], named: true, run: memorySearch },
  { ids: ["D37"], named: true, run: memoryEmbedding },
  { ids: ["P12"], run: size },
  { ids: ["R13"], run: visible },
  { ids: ["R66"], run: history },
  { ids: ["R70"], named: true, run: backup }
]

const IDS = [...new Set(BENCHMARKS.flatMap(({ ids }) => ids))]

const USAGE = `npm run bench -- [options]
  --only P6,P7    some of ${IDS.join(", ")}; D37, P11, R63, R70, and A2 and A3 over sockets take long and are run only when they are named
  --json FILE     writes the rows there as well
Each figure is beside its floor of the same run (docs/performance.md).`

const cells = ({ floor, id, least, name, ok, ratio, target, unit, value }: Row): ReadonlyArray<string> => [
  id,
  name,
  `${value} ${unit}`,
  floor === null ? "" : String(floor),
  ratio === null ? "" : `${ratio}x`,
  `${least ? ">=" : "<="} ${target}${ratio === null ? "" : "x"}`,
  ok ? "ok" : "MISSED"
]

const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

const main = Effect.gen(function* () {
  const { oneOf, values } = programOptions(USAGE, { json: { type: "string" }, only: { type: "string" } })
  const only = values.only?.split(",").map((id) => oneOf("only", id, IDS))
  const chosen = BENCHMARKS.filter(({ ids, named }) =>
    only === undefined ? named === undefined : ids.some((id) => only.includes(id))
  )
  const rows = (yield* Effect.forEach(chosen, ({ run }) => run)).flat()
  yield* Console.log(table([["id", "what", "value", "floor", "ratio", "target", ""], ...rows.map(cells)]))
  const file = values.json
  if (file !== undefined) yield* Effect.sync(() => writeFileSync(file, JSON.stringify(rows, undefined, 2)))
})

NodeRuntime.runMain(main)
