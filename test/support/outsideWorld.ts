/** Everything that an agent's real tools reach outside, as servers that count what was done to them: mail, Notion, a search engine, a site, a port. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { MAIL_READER_PROGRAM } from "./mailReader.ts"
import { rgPath } from "@vscode/ripgrep"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer, Redacted, Schema } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { AgentId, SecretName } from "#schema/Ids.ts"
import { ToolManifest } from "#schema/Tool.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { emailCheck } from "#src/agent/tools/emailCheck.ts"
import { emailReceive } from "#src/agent/tools/emailReceive.ts"
import { emailSend } from "#src/agent/tools/emailSend.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { external } from "#src/agent/tools/external.ts"
import { fsFind } from "#src/agent/tools/fsFind.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsSearch } from "#src/agent/tools/fsSearch.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { notionQuery } from "#src/agent/tools/notionQuery.ts"
import { webFetch } from "#src/agent/tools/webFetch.ts"
import { webSearch } from "#src/agent/tools/webSearch.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { PageReader } from "#src/choird/workers/PageReader.ts"
import { webFetch as hostFetch } from "#src/choird/workers/webFetch.ts"
import { BRAVE_KEY, type BraveResult, braveServer } from "./braveServer.ts"
import { accountOf } from "./mailAccount.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, type MailServer } from "./mailServer.ts"
import { NOTION_TOKEN, type NotionPage, notionServer } from "./notionServer.ts"
import { APART } from "./apartProgram.ts"
import { SESSION } from "./testing/MemoryControlPlane.ts"
import { agentConfig, type TestTools, settingsOf } from "./testing/TestAgent.ts"
import { httpServer, layerDialer, PUBLIC_ADDRESS } from "./web.ts"
import { temporaryWorkspace } from "./workspace.ts"

const [MAIL, NOTION, SEARCH] = ["mail", "notion", "search"].map((name) => SecretName.make(name)) as [
  SecretName,
  SecretName,
  SecretName
]

/** The site whose pages the agent reads; what is asked for below it is an effect. */
export const SITE = "http://site.test"
const COLLECTED = "/collect"

const CALLER: Caller = { session_id: SESSION, agent_id: AgentId.make("test"), epoch: 1, standing: "current" }

/** A port that commands and tools reach if they have a network. */
const openPort = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly came: () => number; readonly close: () => void }>((resume) => {
    let came = 0
    const server = createServer((socket) => {
      came += 1
      socket.on("error", () => undefined).end()
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      resume(Effect.succeed({ port, came: () => came, close: () => void server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

/** A shell's command that reaches a port of this machine. */
export const reaches = (port: number) => `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}'`

const decodeManifest = Schema.decodeUnknownSync(ToolManifest)

/** The texts that the world holds: pages by path, Notion's pages, results of a search. */
interface Texts {
  readonly pages: ReadonlyMap<string, string>
  readonly notion: ReadonlyArray<NotionPage>
  readonly results: ReadonlyArray<BraveResult>
}

export const outsideWorld = Effect.fnUntraced(function* (mail: MailServer, texts: Texts) {
  const paths: Array<string> = []
  const site = yield* httpServer((request, response) => {
    const path = request.url ?? ""
    paths.push(path)
    const text = texts.pages.get(path)
    response.writeHead(text === undefined ? 404 : 200, { "content-type": "text/plain; charset=utf-8" }).end(text ?? "")
  })
  const web = { names: { "site.test": [[PUBLIC_ADDRESS]] }, served: { [PUBLIC_ADDRESS]: site } }
  const host = yield* Effect.provideContext(
    hostFetch,
    yield* Layer.build(Layer.merge(layerDialer(web), PageReader.layer({})))
  )
  const notion = yield* notionServer(texts.notion)
  const search = yield* braveServer(texts.results)
  const port = yield* openPort
  const api = yield* Layer.build(
    OutsideApi.layer.pipe(
      Layer.provide([
        Layer.fresh(NodeHttpClient.layerUndiciOptions({ allowH2: false })),
        AgentSettings.layer(settingsOf(1))
      ])
    )
  )

  const config = (more: Partial<AgentConfig> = {}): AgentConfig => ({
    ...agentConfig(),
    // What is not sent at once is waited for as well.
    heartbeat_interval_ms: 20,
    // Whom it writes to is asked about as well; here nothing but what was read may hold a mail back.
    email: accountOf(mail, "ada", { recipients: "any" }),
    notion: { secret: NOTION, endpoint: notion.origin },
    search: { secret: SEARCH, endpoint: `${search.origin}/res/v1/web/search` },
    ...more
  })

  /** What was done outside, as the servers saw it. */
  const effects = Effect.map(mail.idle, () => ({
    mails: mail.files("bob").length,
    notion: notion.asked.filter(({ method, url }) => method === "PATCH" || url.pathname === "/v1/pages").length,
    site: paths.filter((path) => path.startsWith(COLLECTED)).length,
    port: port.came()
  }))

  /** A workspace with the real tools over it; `program` is what the tool of the image prints. */
  const agent = Effect.fnUntraced(function* (program: string) {
    const { outside, root } = yield* temporaryWorkspace
    const put = (path: string, content: string) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), content)
    }
    const script = (name: string, lines: string) => {
      const path = join(outside, name)
      writeFileSync(path, `#!/bin/sh\n${lines}\n`)
      chmodSync(path, 0o755)
      return path
    }
    writeFileSync(join(outside, "printed"), JSON.stringify({ output: program, untrusted: true }))
    const parts = yield* Layer.build(
      Layer.mergeAll(
        Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root }))),
        ProcessRunner.layer({ ownsPidNamespace: false, apart: APART }),
        GitAccess.layerNone
      )
    )
    const choird = Layer.mock(ControlPlane, {
      execute: ({ input }) =>
        host.prepare(input, CALLER).pipe(
          Effect.flatten,
          Effect.map(({ output, status }) => ({ output, status })),
          Effect.orDie
        )
    })
    const replication = Layer.mock(Replication, { acked: () => 0 })
    const manifest = (name: string, effect: string, network: boolean) =>
      decodeManifest({
        llm: { name, description: name, input_schema: { type: "object" } },
        runtime: { exec_path: name, effect, network }
      })
    const tools: TestTools = Effect.gen(function* () {
      yield* (yield* SecretStore).replaceAll(
        new Map([
          [MAIL, Redacted.make(`ada@${MAIL_DOMAIN}:${MAIL_PASSWORD}`)],
          [NOTION, Redacted.make(NOTION_TOKEN)],
          [SEARCH, Redacted.make(BRAVE_KEY)]
        ])
      )
      return [
        yield* fsRead,
        yield* fsFind(rgPath),
        yield* fsSearch(rgPath),
        yield* exec,
        yield* emailSend,
        yield* emailReceive(MAIL_READER_PROGRAM),
        yield* emailCheck,
        yield* notionQuery,
        yield* webSearch,
        yield* Effect.provide(webFetch, Layer.merge(choird, replication)),
        yield* external(manifest("shop.read", "none", false), script("shop.read", `cat '${outside}/printed'`)),
        yield* external(manifest("out.post", "external", true), script("out.post", `${reaches(port.port)}; echo 1`)),
        yield* external(manifest("out.fail", "external", true), script("out.fail", `${reaches(port.port)}; exit 1`))
      ]
    }).pipe(Effect.provideContext(parts), Effect.provideContext(api), Effect.orDie)
    return { put, root, tools }
  })
  return { agent, config, effects, port: port.port }
})
