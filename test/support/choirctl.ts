/** Runs choirctl: in this process with what it prints kept, or as a process of its own. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Stdio, Stream } from "effect"
import { Host } from "#src/choirctl/terminal/Host.ts"
import { run } from "#src/choirctl/run.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { bundledChoird, BUNDLES } from "./bundles.ts"

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** What a test may say of the terminal that is not there. */
export interface Surroundings {
  readonly stdin?: string
  readonly color?: boolean
  /** Takes the lines on standard error as they come. */
  readonly told?: Array<string>
}

/** One call on this home, without a terminal. */
export const choirctl = Effect.fn("choirctl")(function* (
  home: string,
  args: ReadonlyArray<string>,
  { color = false, stdin = "", told = [] }: Surroundings = {}
) {
  const out: Array<string> = []
  const err: Array<string> = []
  const screen = Layer.succeed(Screen, {
    interactive: false,
    typed_input: false,
    terminal: color,
    color,
    transient: false,
    print: (text) => Effect.sync(() => void out.push(`${text}\n`)),
    note: (text) =>
      Effect.sync(() => {
        told.push(text)
        err.push(`${text}\n`)
      }),
    draw: (text) => Effect.sync(() => void err.push(text))
  })
  const input = Stdio.layerTest({ stdin: Stream.make(new TextEncoder().encode(stdin)) })
  const services = Layer.mergeAll(NodeServices.layer, input)
  const host = Layer.succeed(Host, { provide: (work) => Effect.provide(work, services) })
  const code = yield* run(["--home", home, ...args]).pipe(Effect.provide(Layer.mergeAll(host, screen, bundledChoird)))
  return { code, out: out.join(""), err: err.join("") } satisfies Ran
})

/** The one JSON document that a call printed. */
export const document = ({ out }: Ran): unknown => JSON.parse(out)

/** The JSON documents that a call printed, one a line. */
export const documents = ({ out }: Ran): ReadonlyArray<unknown> =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))

/** The program itself, as it is built. */
export const MAIN = join(BUNDLES, "choirctl.js")

interface Spawned {
  readonly env?: Readonly<Record<string, string>>
  /** Gives the process a terminal, and types each text once what it waits for is on the screen; `before` happens just before that. */
  readonly typing?: ReadonlyArray<{ readonly after: string; readonly text: string; readonly before?: () => void }>
}

/** A process of its own. */
export const spawnChoirctl = (args: ReadonlyArray<string>, { env, typing }: Spawned = {}) =>
  Effect.callback<Ran>((resume) => {
    const line = [process.execPath, MAIN, ...args]
    const [program = "", ...rest] = typing === undefined ? line : ["script", "-qec", line.join(" "), "/dev/null"]
    const child = spawn(program, rest, { env: { ...process.env, ...env } })
    const left = [...(typing ?? [])]
    let out = ""
    let err = ""
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      out += part
      for (let next = left[0]; next !== undefined && out.includes(next.after); next = left[0]) {
        next.before?.()
        child.stdin.write(next.text)
        left.shift()
      }
    })
    child.stderr.setEncoding("utf8").on("data", (part: string) => (err += part))
    child.once("close", (code) => resume(Effect.succeed({ code: code ?? -1, out, err })))
    if (typing === undefined) child.stdin.end()
    return Effect.sync(() => child.kill("SIGKILL"))
  })
