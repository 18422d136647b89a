import { defineConfig } from "rolldown"

/** One self-contained file a program, so that a sandbox needs nothing but Node and that file. */
const program = (name: string, input: string) =>
  defineConfig({
    input,
    platform: "node",
    external: [/^@electric-sql\//, "@vscode/ripgrep", "grammy"],
    output: {
      file: `dist/${name}.js`,
      format: "esm",
      codeSplitting: false,
      minify: true,
      banner: "#!/usr/bin/env node"
    }
  })

export default [
  program("choird", "src/choird/main.ts"),
  program("postgres-worker", "src/choird/database/postgres-worker.ts"),
  program("choirctl", "src/choirctl/main.ts"),
  program("choir-agent", "src/agent/main.ts"),
  program("offline-model", "src/offline-model/main.ts")
]
