/**
 * Answers of providers as files (`test/corpus/wire`), served byte for byte on a real socket. A file has parts between lines of `=====`, one for
 * each request: `HTTP status`, headers, an empty line, the body. Lines that begin with `#` say where it is from. Without a content type the
 * body is a stream, and each of its lines is the data of one event; `!` in front has the bytes as they are, with `\n` and `\r` written out;
 * `@cut` ends the connection. The first word of a file's name is the API.
 */
import { readdirSync, readFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Effect } from "effect"
import type { ModelApi } from "#schema/Continuation.ts"

const FOLDER = join(import.meta.dirname, "../corpus/wire")

interface Part {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: ReadonlyArray<string>
  readonly isCut: boolean
}

const bytesOf = (line: string): string => {
  if (line.startsWith("!"))
    return line
      .slice(1)
      .replaceAll(String.raw`\n`, "\n")
      .replaceAll(String.raw`\r`, "\r")
  return line.startsWith("event:") ? `${line}\n` : `data: ${line}\n\n`
}

export const partOf = (text: string): Part => {
  const lines = text.split("\n")
  const begin = lines.findIndex((line) => line.startsWith("HTTP "))
  const blank = lines.indexOf("", begin)
  const given = lines.slice(begin + 1, blank).map((line) => {
    const colon = line.indexOf(":")
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  const headers = Object.fromEntries(given)
  const body = lines.slice(blank + 1).filter((line) => line !== "" && line !== "@cut")
  const type = headers["content-type"]
  const isEvents = type === undefined || type.startsWith("text/plain")
  return {
    status: Number(/^HTTP (\d+)/u.exec(lines[begin] ?? "")?.[1]),
    headers: { "content-type": "text/event-stream", ...headers },
    pieces: isEvents ? body.map(bytesOf) : [body.join("\n")],
    isCut: lines.includes("@cut")
  }
}

/** A case by its name. */
export interface WireCase {
  readonly name: string
  readonly api: ModelApi
  readonly parts: ReadonlyArray<Part>
}

export const wireCases = (): ReadonlyArray<WireCase> =>
  readdirSync(FOLDER)
    .toSorted()
    .map((file) => {
      const name = file.replace(/\.txt$/u, "")
      const parts = readFileSync(join(FOLDER, file), "utf8").split("\n=====\n").map(partOf)
      return { name, api: (/^[a-z]+/u.exec(name)?.[0] ?? "chat") as ModelApi, parts }
    })

/** Each piece in a chunk of its own. */
const write = (response: ServerResponse, { headers, isCut, pieces, status }: Part) => {
  response.writeHead(status, headers)
  for (const piece of pieces) response.write(piece)
  if (!isCut) return void response.end()
  // What was written goes out first.
  response.write("", () => setImmediate(() => response.socket?.destroySoon()))
}

/** A server that answers each request with the next part, and with the last one from then on; what it was asked. */
export const serveParts = (parts: ReadonlyArray<Part>) =>
  Effect.acquireRelease(
    Effect.callback<{
      readonly endpoint: string
      readonly asked: Array<string>
      readonly close: () => void
    }>((resume) => {
      const asked: Array<string> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const part = parts[Math.min(asked.length, parts.length - 1)]
          asked.push(Buffer.concat(chunks).toString("utf8"))
          if (part !== undefined) write(response, part)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        resume(Effect.succeed({ endpoint: `http://127.0.0.1:${port}/v1`, asked, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )
