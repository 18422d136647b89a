/** Many seeds, shared by processes. A process is replaced after some seeds, so that none grows; a file keeps what came of each. */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { commit } from "./commit.ts"
import { print } from "./print.ts"
import { RESULT, Tally } from "./Tally.ts"

/** Seeds of one process: its first ten take twice as long as later ones. */
const SEEDS_PER_PROCESS_MAX = 250

interface Asked {
  readonly from: number
  readonly total: number
  readonly workers: number
  readonly mode?: string | undefined
  readonly without: string
  /** The file with the results, to which a run that was interrupted adds the others. */
  readonly log?: string | undefined
}

/** What makes results of two runs comparable. */
const headOf = ({ mode = "both", without }: Asked): string =>
  `#run mode ${mode}; without ${without === "" ? "nothing" : without}`

const seedOf = (line: string): number => Number(line.split(" ")[1])

/** The whole lines of results in a file, of seeds that are asked for. A run that was killed may have written half of its last one. */
const resultsIn = (asked: Asked, log: string): ReadonlyArray<string> => {
  const head = headOf(asked)
  if (!existsSync(log)) appendFileSync(log, `${head}\n`)
  const [first, ...lines] = readFileSync(log, "utf8").split("\n").slice(0, -1)
  if (first !== head) throw new Error(`${log} is of another run ("${first ?? ""}", now "${head}"); name a new file`)
  // Which commit each part of the file is of is in it, so that a program that changed between two parts is seen.
  appendFileSync(log, `\n#commit ${commit() ?? "unknown"}\n`)
  const wanted = (seed: number) => seed >= asked.from && seed < asked.from + asked.total
  const results = lines.filter(
    (line) => line.startsWith(RESULT) && /(?:passed|failed)$/u.test(line) && wanted(seedOf(line))
  )
  return [...new Map(results.map((line) => [seedOf(line), line])).values()]
}

/** Seeds that are still to run, in rows of neighbours that one process takes. */
const rowsOf = ({ from, total, workers }: Asked, done: ReadonlySet<number>) => {
  const most = Math.min(SEEDS_PER_PROCESS_MAX, Math.ceil((total - done.size) / workers))
  const rows: Array<{ from: number; seeds: number }> = []
  for (let seed = from; seed < from + total; seed++) {
    if (done.has(seed)) continue
    const last = rows.at(-1)
    if (last !== undefined && last.from + last.seeds === seed && last.seeds < most) last.seeds++
    else rows.push({ from: seed, seeds: 1 })
  }
  return rows
}

/** Answers the exit code. The last line counts the seeds, the one before the events, the one before that the time. */
export const seedsInWorkers = async (asked: Asked): Promise<number> => {
  const { log, mode, total, without, workers } = asked
  const tally = new Tally(total)
  const known = log === undefined ? [] : resultsIn(asked, log)
  for (const line of known) tally.add(line)
  tally.begin()
  const rows = rowsOf(asked, new Set(known.map(seedOf)))
  const flags = ["--workers", "1", "--without", without, ...(mode === undefined ? [] : ["--mode", mode])]
  const keep = (line: string) => {
    if (log !== undefined) appendFileSync(log, `${line}\n`)
  }
  const work = async (): Promise<void> => {
    for (let row = rows.shift(); row !== undefined; row = rows.shift())
      await tally.worker([...flags, "--from", String(row.from), "--seeds", String(row.seeds)], keep)
  }
  await Promise.all(Array.from({ length: workers }, work))
  // A worker that died has not told of its seeds.
  const failed = total - tally.passed
  print(tally.speed())
  const kinds = [...tally.kinds].map(([kind, count]) => `${kind} ${count}`)
  print(`stored: ${kinds.sort().join(", ")}`)
  print(`${tally.passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}
