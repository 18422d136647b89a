import ranks from "gpt-tokenizer/bpeRanks/o200k_base"
import { defineConfig, type Plugin } from "rolldown"
import { packVocabulary } from "./src/agent/Vocabulary.ts"

const BANNER = "#!/usr/bin/env node"
const EXTERNAL = [/^@electric-sql\//, "@vscode/ripgrep", "dockerode", "grammy", /^gpt-tokenizer\/bpeRanks\//]

/** What the agent counts tokens by: beside its program, since in it its 2 MB would be read at each start. */
const vocabulary: Plugin = {
  name: "vocabulary",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "choir-agent.o200k", source: packVocabulary(ranks) })
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
      file: `dist/${name}.js`,
      format: "esm",
      codeSplitting: false,
      minify: true,
      banner: BANNER
    }
  })

/**
 * choirctl in three parts: what `--help` needs, the client of choird, and the rest on demand. A command that only asks for help
 * must not wait for the schemas of everything.
 */
const choirctl = defineConfig({
  input: { choirctl: "src/choirctl/main.ts" },
  platform: "node",
  external: EXTERNAL,
  output: {
    dir: "dist",
    format: "esm",
    minify: true,
    entryFileNames: "choirctl.js",
    chunkFileNames: "choirctl/[name].js",
    banner: (chunk) => (chunk.isEntry ? BANNER : ""),
    codeSplitting: {
      includeDependenciesRecursively: true,
      groups: [
        { name: "start", test: /src\/choirctl\/start\.ts$/, priority: 3 },
        { name: "client", test: /src\/choirctl\/OperatorClient\.ts$/, priority: 2 }
      ]
    }
  }
})

export default [
  program("choird", "src/choird/main.ts"),
  program("postgres-worker", "src/choird/database/postgres-worker.ts"),
  choirctl,
  program("choir-agent", "src/agent/main.ts", [vocabulary]),
  program("offline-model", "src/offline-model/main.ts")
]
