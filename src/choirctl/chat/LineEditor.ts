/** A line that a person edits at the bottom of the terminal while other text appears above it. */
import { clearScreenDown, createInterface, cursorTo, moveCursor } from "node:readline"
import { type Cause, Effect, Queue } from "effect"

/** Lines that are typed ahead in `choirctl chat`. */
const CHAT_LINES_MAX = 64

export interface LineEditor {
  /** The lines as they are entered; done when the person leaves with Ctrl-D. */
  readonly lines: Queue.Dequeue<string, Cause.Done>
  /** A Ctrl-C each. */
  readonly interrupts: Queue.Dequeue<void>
  /** Prints lines above what is being typed. */
  above(text: string): Effect.Effect<void>
  /** Changes the prompt, and leaves what is being typed as it is. */
  prompt(text: string): Effect.Effect<void>
}

/** Takes the process's terminal until the scope closes. Of lines typed ahead, those beyond CHAT_LINES_MAX are not taken. */
export const openLineEditor = Effect.gen(function* () {
  const lines = yield* Queue.dropping<string, Cause.Done>(CHAT_LINES_MAX)
  const interrupts = yield* Queue.sliding<void>(1)
  const editor = yield* Effect.acquireRelease(
    Effect.sync(() => createInterface({ input: process.stdin, output: process.stdout })),
    (editor) => Effect.sync(() => editor.close())
  )
  editor.on("line", (line) => {
    Queue.offerUnsafe(lines, line)
    editor.prompt()
  })
  editor.on("SIGINT", () => Queue.offerUnsafe(interrupts, undefined))
  editor.once("close", () => Queue.endUnsafe(lines))
  const erase = () => {
    moveCursor(process.stdout, 0, -editor.getCursorPos().rows)
    cursorTo(process.stdout, 0)
    clearScreenDown(process.stdout)
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => void process.stdout.write("\n")))
  return {
    lines,
    interrupts,
    above: (text) =>
      Effect.sync(() => {
        erase()
        process.stdout.write(`${text}\n`)
        editor.prompt(true)
      }),
    prompt: (text) =>
      Effect.sync(() => {
        erase()
        editor.setPrompt(text)
        editor.prompt(true)
      })
  } satisfies LineEditor
})
