/** Standard output and standard error, and the end of a command whose output is no longer read. */
import { Context, Effect, Layer } from "effect"

export class Screen extends Context.Service<
  Screen,
  {
    /** Whether questions can be asked: standard input and output are both a terminal. */
    readonly interactive: boolean
    /** Whether standard input is a terminal, and not a pipe or a file. */
    readonly typed_input: boolean
    /** Whether standard output is a terminal. */
    readonly terminal: boolean
    /** Whether standard output takes colours. */
    readonly color: boolean
    /** Whether standard error is a terminal, where a line may be written over. */
    readonly transient: boolean
    /** Prints data as lines on standard output. */
    print(text: string): Effect.Effect<void>
    /** Prints everything else as lines on standard error. */
    note(text: string): Effect.Effect<void>
    /** Writes to standard error as it is, for what is written over later. */
    draw(text: string): Effect.Effect<void>
  }
>()("choir/choirctl/Screen") {
  /** The terminal or pipes that this process has. Writing to a pipe waits for its reader. */
  static readonly layer = Layer.sync(Screen, () => {
    const wanted = process.env["NO_COLOR"] === undefined || process.env["NO_COLOR"] === ""
    const write = (stream: () => NodeJS.WriteStream, text: string) => Effect.sync(() => void stream().write(text))
    const out = () => process.stdout
    const err = () => process.stderr
    // Asked for one by one, since looking at a stream of the process opens it.
    return Screen.of({
      get interactive() {
        return process.stdin.isTTY && process.stdout.isTTY
      },
      get typed_input() {
        return process.stdin.isTTY
      },
      terminal: process.stdout.isTTY,
      color: wanted && process.env["TERM"] !== "dumb" && process.stdout.isTTY,
      get transient() {
        return process.stderr.isTTY
      },
      print: (text) => write(out, `${text}\n`),
      note: (text) => write(err, `${text}\n`),
      draw: (text) => write(err, text)
    })
  })
}

/** A screen whose notes are changed before they are printed. */
export const withNotes = (screen: Screen["Service"], change: (text: string) => string): Screen["Service"] => ({
  get interactive() {
    return screen.interactive
  },
  get typed_input() {
    return screen.typed_input
  },
  terminal: screen.terminal,
  color: screen.color,
  get transient() {
    return screen.transient
  },
  print: screen.print,
  note: (text) => screen.note(change(text)),
  draw: screen.draw
})

let prints_only = false

/** Marks a command that only prints, so that it ends with its reader. */
export const endWithReader: Effect.Effect<void> = Effect.sync(() => {
  prints_only = true
})

/** Lets any other command run to its end without its output; its exit code reports the result. */
export const surviveClosedPipes = (): void => {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that has gone wants no more; a disk that is full has lost what the command was asked for.
    if (error.code !== "EPIPE") {
      process.stderr.write(`error: the output cannot be written: ${error.message}\n`)
      process.exit(1)
    }
    if (prints_only) process.exit(0)
  })
  process.stderr.on("error", () => undefined)
}
