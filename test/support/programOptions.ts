/** The command lines of the long programs (simulation, chaos, fuzz, load, benchmarks): told by `--help`, and refused in one sentence. */
import { parseArgs, type ParseArgsConfig } from "node:util"

type Options = NonNullable<ParseArgsConfig["options"]>

/** As choirctl's: the command line is wrong. */
const USAGE = 2

/** Ends the program with the reason and the usage. */
const refuse = (usage: string, reason: string): never => {
  process.stderr.write(`${reason}\n\n${usage}\n`)
  return process.exit(USAGE)
}

/** What was asked for; never returns for `--help` and for what cannot be. */
export const programOptions = <const O extends Options>(usage: string, options: O) => {
  const parse = () => {
    try {
      return parseArgs({ options })
    } catch (error) {
      return refuse(usage, error instanceof Error ? error.message : String(error))
    }
  }
  if (process.argv.includes("--help")) {
    process.stdout.write(`${usage}\n`)
    process.exit(0)
  }
  const { values } = parse()
  return {
    values,
    /** A number above zero. */
    positive: (name: string, text: string): number =>
      Number(text) > 0 && Number.isFinite(Number(text))
        ? Number(text)
        : refuse(usage, `--${name} takes a number above 0, not "${text}"`),
    /** One of some words. */
    oneOf: <const W extends string>(name: string, text: string, words: ReadonlyArray<W>): W =>
      words.find((word) => word === text) ?? refuse(usage, `--${name} takes one of ${words.join(", ")}, not "${text}"`)
  }
}
