/** How many runs passed and failed in worker processes, and what they stored. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { NODE_FLAGS } from "./hunts.ts"
import { print } from "./print.ts"

/** Runs between two lines of progress. */
const PROGRESS_RUNS = 100
/** A worker's line that says how one run went. */
export const RESULT = "#seed"

export class Tally {
  passed = 0
  failed = 0
  /** Stored events of each kind. */
  readonly kinds = new Map<string, number>()
  readonly #total: number
  readonly #begun_ms = performance.now()
  /** Runs of an earlier program. */
  #before = 0

  constructor(total: number) {
    this.#total = total
  }

  get done(): number {
    return this.passed + this.failed
  }

  /** Counts the line of a run; that of one fault tells of no events. */
  add(line: string): void {
    if (line.endsWith("passed")) this.passed++
    else this.failed++
    const text = /\{.*\}/u.exec(line)?.[0] ?? "{}"
    for (const [kind, count] of Object.entries(JSON.parse(text) as Record<string, number>))
      this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + count)
  }

  /** What is counted so far was run before. */
  begin(): void {
    this.#before = this.done
  }

  /** How fast they were run. */
  speed(): string {
    const seconds = (performance.now() - this.#begun_ms) / 1000
    return `${this.done - this.#before} in ${seconds.toFixed(0)} s, ${((this.done - this.#before) / seconds).toFixed(2)} a second`
  }

  /** Runs one worker, this program with other arguments, to its end. What it prints beside results goes on to the terminal; `heard` gets its results. */
  worker(args: ReadonlyArray<string>, heard: (line: string) => void = () => undefined): Promise<void> {
    return new Promise((resolve) => {
      const child = spawn(process.execPath, [...NODE_FLAGS, import.meta.dirname + "/main.ts", ...args], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const lines = createInterface({ input: child.stdout }).on("line", (line) => {
        if (!line.startsWith(RESULT)) {
          print(line)
          return
        }
        this.add(line)
        heard(line)
        if (this.done % PROGRESS_RUNS === 0)
          process.stderr.write(`${this.done} of ${this.#total}, ${this.failed} failed, ${this.speed()}\n`)
      })
      lines.on("close", () => resolve())
    })
  }
}
