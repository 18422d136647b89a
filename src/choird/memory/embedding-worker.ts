/**
 * The process of the local embedding model, whose packages have had no release for years: they have none of choird's files, secrets and network, and their
 * arithmetic never stalls it. It loads the model, then answers each {@link EmbeddingOrder} with one {@link EmbeddingReport}. Its argument is the folder
 * of the model's files.
 */
import { readFile } from "node:fs/promises"
import { setPriority } from "node:os"
import { join } from "node:path"
import { type EmbeddingsModelSource, initModel } from "@energetic-ai/embeddings"
import * as core from "@energetic-ai/core"
import { makeJsonLines } from "#src/shared/wire/jsonLines.ts"
import {
  EMBEDDING_ORDER_BYTES_MAX,
  EMBEDDING_PROBLEM_CHARS_MAX,
  type EmbeddingOrder,
  type EmbeddingReport
} from "./embeddingProtocol.ts"

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

/** How far this process is behind choird where both want the processor. */
const NICENESS = 10

/** Functions of the package that its declarations take from packages that it does not bring. */
interface Core {
  /** Resolves once the arithmetic is there: what comes earlier is refused. */
  ready(): Promise<void>
  setWasmPaths(folder: string): void
  loadGraphModel(address: string): Awaited<ReturnType<EmbeddingsModelSource>>["model"]
}

const { loadGraphModel, ready, setWasmPaths } = core as unknown as Core

const report = (message: EmbeddingReport) => process.stdout.write(`${JSON.stringify(message)}\n`)
const problemOf = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).slice(0, EMBEDDING_PROBLEM_CHARS_MAX)

const load = async (folder: string) => {
  setWasmPaths(`${folder}/`)
  await ready()
  const model = await initModel(async () => ({
    model: await loadGraphModel(`file://${join(folder, "model.json")}`),
    vocabulary: JSON.parse(await readFile(join(folder, "vocab.json"), "utf8"))
  }))
  await model.embed(WARM_UP)
  return model
}

type Model = Awaited<ReturnType<typeof load>>

/** The mean of the windows' vectors by their tokens: each window counts as much as it says. */
const embed = async (model: Model, text: string): Promise<ReadonlyArray<number>> => {
  const windows = textWindows(text, (word) => model.tokenizer.encode(word).length)
  let sum: Float64Array | undefined
  // One after the other: a batch would not be faster, and would take a hundred megabytes more.
  for (const window of windows) {
    const values = await model.embed(window.text)
    sum ??= new Float64Array(values.length)
    for (const [index, value] of values.entries()) sum[index] = (sum[index] ?? 0) + value * window.tokens
  }
  return Array.from(sum ?? [], Math.fround)
}

const serve = async () => {
  setPriority(NICENESS)
  const model = await load(process.argv[2] ?? "")
  report({ _tag: "Ready" })
  const take = makeJsonLines(EMBEDDING_ORDER_BYTES_MAX, (order) => {
    embed(model, (order as EmbeddingOrder).text).then(
      (values) => report({ _tag: "Vector", values }),
      (error: unknown) => report({ _tag: "Refused", problem: problemOf(error) })
    )
  })
  process.stdin.on("data", (chunk: Buffer) => {
    if (take(chunk) !== undefined) process.exit(1)
  })
}

serve().catch((error: unknown) => report({ _tag: "Unusable", problem: problemOf(error) }))
