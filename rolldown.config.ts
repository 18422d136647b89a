import ranks from "gpt-tokenizer/bpeRanks/o200k_base"
import { defineConfig, type Plugin } from "rolldown"
import { packVocabulary } from "./src/agent/model/Vocabulary.ts"
import { CODE, MAIL } from "./src/shared/program/compiledProgram.ts"

const BANNER = "#!/usr/bin/env node"
/** The build makes everything in a folder of its own first. */
const DIST = process.env["CHOIR_DIST"] ?? "dist"
const EXTERNAL = [
  /^@electric-sql\//,
  /^@energetic-ai\//,
  "@vscode/ripgrep",
  "dockerode",
  "grammy",
  "jsonc-parser",
  "playwright-core",
  /^gpt-tokenizer\/bpeRanks\//
]

/** What the agent counts tokens by: beside its program, since in it its 2 MB would be read at each start. */
const vocabulary: Plugin = {
  name: "vocabulary",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "choir-agent.o200k", source: packVocabulary(ranks) })
  }
}

/** What of the HTTP client the agent uses: neither `fetch` nor web sockets, mocks and caches, which are two thirds of it. */
const HTTP_CLIENT = `
import Agent from "undici/lib/dispatcher/agent.js"
import Dispatcher from "undici/lib/dispatcher/dispatcher.js"
import request from "undici/lib/api/api-request.js"
Dispatcher.prototype.request = request
export { Agent }
export default { Agent, Dispatcher }
`
const NO_WEB_SOCKETS = "export const WebSocket = undefined, WebSocketServer = undefined; export default undefined"
const NO_HTTP2 = "export const constants = {}; export default { constants }"
const NO_TLS =
  "export const connect = undefined, createServer = connect, createSecureContext = connect, TLSSocket = connect"

/** The agent loads its mail clients at their first use from a file of their own, which is as large as the rest of its program. */
const mailApart: Plugin = {
  name: "mail apart",
  resolveId: (id) => (id === "./mailClients.ts" ? { id: `./choir-agent${MAIL}`, external: true } : undefined)
}

/** choird itself is a file of its own, since only what is loaded after the check of Node's version comes from Node's compile cache. */
const runApart: Plugin = {
  name: "run apart",
  resolveId: (id) => (id === "./run.ts" ? { id: "./choird.run.js", external: true } : undefined)
}

/** The IMAP client neither logs nor uses a proxy. */
const NO_LOG = "export default undefined"
const NO_PROXY = "export const SocksClient = undefined"

/** Another module in the place of one, for those who import it from a file that the pattern fits. */
const instead = (name: string, module: string, importers = /./u): Plugin => ({
  name: `instead of ${name}`,
  resolveId: (id, importer = "") => (id === name && importers.test(importer) ? `\0${name}` : undefined),
  load: (id) => (id === `\0${name}` ? module : undefined)
})

/**
 * An agent waits for everything that its program loads. HTTP/2 is switched off where its clients are made, and TLS is loaded by the
 * HTTP client at the first connection that needs it; the sockets of the platform, which would load it at once, are Unix sockets.
 */
const SLIM = [
  instead("undici", HTTP_CLIENT),
  instead("ws", NO_WEB_SOCKETS),
  instead("node:http2", NO_HTTP2),
  instead("node:tls", NO_TLS, /platform-node-shared/u),
  instead("pino", NO_LOG),
  instead("socks", NO_PROXY)
]

const escaped = (character: string) =>
  Array.from(character.split(""), (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")

/**
 * The program as one function that is given `require` and its own place. V8 keeps it in one byte a character, half of what it takes
 * otherwise, since none of them needs two. After the minifier, which would find the function unused and undo the rest.
 */
const asFunction: Plugin = {
  name: "as a function",
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle))
      if (chunk.type === "chunk")
        chunk.code = `(function (require, __filename) {${chunk.code.replaceAll(/[^\0-\x7f]/gu, escaped)}\n})`
  }
}

/**
 * One file a program, so that a sandbox needs nothing but Node and that file. What only choird uses and finds its own files by
 * its place, or does not survive bundling, stays a package of its own.
 */
const program = (name: string, input: string, plugins: ReadonlyArray<Plugin> = []) =>
  defineConfig({
    input,
    plugins: [...plugins],
    platform: "node",
    external: EXTERNAL,
    output: {
      file: `${DIST}/${name}.js`,
      format: "esm",
      codeSplitting: false,
      minify: true,
      banner: BANNER
    }
  })

/** The agent itself as one function, which src/shared/program/compiledProgram.ts runs in the form that V8 compiled it to. */
const agentCode = defineConfig({
  input: "src/agent/main.ts",
  plugins: [mailApart, ...SLIM, asFunction],
  platform: "node",
  external: EXTERNAL,
  // The HTTP client as Node has it in itself: without the parser that is being tried out.
  transform: { define: { esbuildDetection: "'node'" } },
  output: {
    file: `${DIST}/choir-agent${CODE}`,
    format: "cjs",
    codeSplitting: false,
    minify: true
  }
})

/**
 * choirctl in parts, since a call must not wait for what it does not use: what every call needs, the client of choird, and each command with
 * its schemas. The check of Node's version is apart from all, since only what is loaded after it comes from Node's compile cache.
 */
const choirctl = defineConfig({
  input: { choirctl: "src/choirctl/main.ts" },
  platform: "node",
  external: EXTERNAL,
  output: {
    dir: DIST,
    format: "esm",
    minify: true,
    entryFileNames: "choirctl.js",
    chunkFileNames: "choirctl/[name].js",
    banner: (chunk) => (chunk.isEntry ? BANNER : ""),
    codeSplitting: {
      includeDependenciesRecursively: true,
      groups: [
        { name: "version", test: /src\/shared\/program\/version\.ts$/, priority: 4 },
        { name: "start", test: /src\/choirctl\/run\.ts$/, priority: 3 },
        { name: "client", test: /src\/choirctl\/client\/OperatorClient\.ts$/, priority: 2 }
      ]
    }
  }
})

export default [
  program("choird", "src/choird/main.ts", [runApart]),
  program("choird.run", "src/choird/run.ts"),
  program("postgres-worker", "src/choird/database/postgres-worker.ts"),
  program("embedding-worker", "src/choird/memory/embedding-worker.ts"),
  program("page-worker", "src/choird/workers/page-worker.ts"),
  program("browser-worker", "src/choird/workers/browser-worker.ts"),
  choirctl,
  program("choir-agent", "src/agent/launch.ts", [vocabulary]),
  agentCode,
  program(`choir-agent${MAIL.replace(/\.js$/u, "")}`, "src/agent/mail/mailClients.ts", SLIM),
  program("offline-model", "demo/offline-model/main.ts")
]
