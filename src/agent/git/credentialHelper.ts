/**
 * The agent's program as git's credential helper: `git-cred-helper SOCKET get` asks the agent and prints what git reads. `store`
 * and `erase` do nothing, since nothing is kept.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Console, Effect, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { Stdio } from "effect"
import { GIT_CRED_HELPER } from "#src/shared/git/gitCredential.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { RPC_TIMEOUT_MS } from "#src/agent/control/verbAnswer.ts"

/** What git sends its credential helper (D14). */
export const CREDENTIAL_REQUEST_BYTES_MAX = 8 * 1024

/** What starts it: the program of an image, where the agent is in one, else this program by its first argument. */
export const gitHelper = (choir: string): ReadonlyArray<string> => {
  const baked = join(choir, "bin", GIT_CRED_HELPER)
  return existsSync(baked) ? [baked] : [...process.argv.slice(0, 2), GIT_CRED_HELPER]
}

const standardInput = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  let bytes = 0
  return yield* stdin.pipe(
    Stream.takeWhile((chunk) => (bytes += chunk.length) <= CREDENTIAL_REQUEST_BYTES_MAX),
    Stream.decodeText(),
    Stream.mkString
  )
})

/** @param args what follows {@link GIT_CRED_HELPER} on the command line. */
export const credentialHelper = Effect.fnUntraced(function* ([socket, action]: ReadonlyArray<string>) {
  if (socket === undefined || action !== "get") return
  const request = yield* standardInput
  const body = HttpClientRequest.post("http://agent/").pipe(
    HttpClientRequest.bodyJsonUnsafe({ pid: process.pid, request })
  )
  const answer = yield* Effect.provide(
    Effect.flatMap(HttpClient.execute(body), (response) =>
      Effect.map(response.text, (text) => ({ text, status: response.status }))
    ),
    layerSocketClient(socket)
  ).pipe(Effect.timeout(RPC_TIMEOUT_MS))
  if (answer.status === 200) return yield* Console.log(answer.text.trimEnd())
  yield* Console.error(`choir: ${answer.text}`)
})
