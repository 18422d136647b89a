/** `kill -9` of the programs of one home, and of no other. */
import { readdirSync, readFileSync } from "node:fs"
import { Effect, Schedule } from "effect"
import type { Home } from "./Home.ts"

/** How long a program that was started anew may take to be there. */
const SEEN = Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(1200)])

const textOf = (pid: string, name: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8")
  } catch {
    return ""
  }
}

/** The processes of Node whose command lines have this. */
const running = (words: string): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .filter((name) => /^\S*\/node\0/u.test(textOf(name, "cmdline")) && textOf(name, "cmdline").includes(words))
    .map(Number)

const parentOf = (pid: number): number => Number(/\) \S+ (\d+)/u.exec(textOf(String(pid), "stat"))?.[1])

/** The choird of a home, whose command line names it. */
const choirdOf = ({ home }: Home) => running(`choird.js\0--home\0${home}/`)

const isBelow = (pid: number, ancestor: number): boolean =>
  pid === ancestor || (pid > 1 && isBelow(parentOf(pid), ancestor))

/** The agent that Ada talks with, in its sandbox: the group has another one. */
const agentsOf = (home: Home) => {
  const [choird = 0] = choirdOf(home)
  return running("choir-agent.js\0--control-plane").filter(
    (pid) => isBelow(pid, choird) && textOf(String(pid), "environ").includes("AGENT_ID=choir\0")
  )
}

const kill = (pid: number) => Effect.ignore(Effect.try(() => process.kill(pid, "SIGKILL")))

/** Kills the first of these processes, once it runs; answers which one it was. */
const killFirst = Effect.fnUntraced(function* (find: () => ReadonlyArray<number>) {
  const found = yield* Effect.retry(
    Effect.suspend(() => Effect.fromNullishOr(find()[0])),
    SEEN
  )
  yield* kill(found)
  return found
})

export const killChoird = (home: Home) => killFirst(() => choirdOf(home))

/** Kills the agent that runs, other than those that were killed before. */
export const killAgent = (home: Home, before: ReadonlyArray<number>) =>
  killFirst(() => agentsOf(home).filter((pid) => !before.includes(pid)))
