/** The compiler's language server, which knows by types where a field is used. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

/** A place in a file, by the number of characters before it. */
export interface Place {
  readonly path: string
  readonly offset: number
}

interface Position {
  readonly line: number
  readonly character: number
}
interface Found {
  readonly uri: string
  readonly range: { readonly start: Position }
}
interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly items?: ReadonlyArray<unknown> }
  readonly result?: unknown
  readonly error?: unknown
}

const END_OF_HEAD = "\r\n\r\n"

const positionOf = (text: string, offset: number): Position => {
  const before = text.slice(0, offset).split("\n")
  return { line: before.length - 1, character: before.at(-1)?.length ?? 0 }
}

const offsetOf = (text: string, { character, line }: Position): number =>
  text
    .split("\n")
    .slice(0, line)
    .reduce((sum, each) => sum + each.length + 1, character)

/** Starts a server for the package in a folder. It ends with `close`. */
export const startLanguageServer = async (folder: string) => {
  const server = spawn(join(packageFolder, "node_modules/.bin/tsc"), ["--lsp", "--stdio"], {
    cwd: folder,
    stdio: ["pipe", "pipe", "ignore"]
  })
  const waiting = new Map<number, (message: Message) => void>()
  const texts = new Map<string, string>()
  let last = 0
  let received = Buffer.alloc(0)

  const send = (message: object) => {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message })
    server.stdin.write(`Content-Length: ${Buffer.byteLength(text)}${END_OF_HEAD}${text}`)
  }
  const take = ({ id, method, params, ...answer }: Message) => {
    if (id === undefined) return
    // It asks for settings, and has none.
    if (method !== undefined) return send({ id, result: params?.items?.map(() => null) ?? null })
    waiting.get(id)?.(answer)
    waiting.delete(id)
  }
  server.stdout.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const head = received.indexOf(END_OF_HEAD)
      const length = /Content-Length: (\d+)/iu.exec(received.subarray(0, Math.max(0, head)).toString())?.[1]
      const end = head + END_OF_HEAD.length + Number(length)
      if (length === undefined || received.length < end) return
      take(JSON.parse(received.subarray(head + END_OF_HEAD.length, end).toString()) as Message)
      received = received.subarray(end)
    }
  })
  const ask = (method: string, params: object) =>
    new Promise<unknown>((resolve, reject) => {
      last += 1
      waiting.set(last, ({ error, result }) =>
        error === undefined ? resolve(result) : reject(new Error(JSON.stringify(error)))
      )
      send({ id: last, method, params })
    })
  const textOf = (path: string) => {
    const text = texts.get(path) ?? readFileSync(path, "utf8")
    texts.set(path, text)
    return text
  }

  await ask("initialize", {
    processId: process.pid,
    rootUri: pathToFileURL(folder).href,
    capabilities: {}
  })
  send({ method: "initialized", params: {} })

  return {
    /** The uses of a name elsewhere, its declaration left out. */
    references: async ({ offset, path }: Place): Promise<ReadonlyArray<Place>> => {
      const uri = pathToFileURL(path).href
      if (!texts.has(path))
        send({
          method: "textDocument/didOpen",
          params: { textDocument: { uri, languageId: "typescript", version: 1, text: textOf(path) } }
        })
      const found = (await ask("textDocument/references", {
        textDocument: { uri },
        position: positionOf(textOf(path), offset),
        context: { includeDeclaration: false }
      })) as ReadonlyArray<Found> | null
      return (found ?? []).map(({ range, uri: other }) => {
        const at = fileURLToPath(other)
        return { path: at, offset: offsetOf(textOf(at), range.start) }
      })
    },
    close: () => server.kill()
  }
}
