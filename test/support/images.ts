/** A home of choird with its image builder and two real repositories, for the tests of both. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { Images, type BuildOptions } from "#src/choird/images/Images.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { skillText } from "./skills.ts"
import { makeGitRepo, temporaryFolder } from "./gitRepo.ts"

export const AGENT = AgentId.make("agent-1")

export const GLOBAL_FILES = {
  "identity/USER.md": "user",
  "identity/SOUL.md": "soul",
  "identity/SOUL-CORE.md": "core",
  "tools/echo.json": JSON.stringify({
    llm: { name: "echo", description: "says it again", input_schema: { type: "object" } },
    runtime: { exec_path: "/choir/tools/global/echo" }
  }),
  "tools/echo": "#!/bin/sh\ncat\n",
  "skills/think.json": skillText("think")
}

export const reposLayer = (home: string) =>
  Repos.layer(home).pipe(Layer.provideMerge(Git.layer), Layer.provideMerge(NodeServices.layer))

/** A runtime that takes images as the folders that they are. */
export const folders = Layer.mock(ContainerRuntime, { type: "process", buildImage: () => Effect.succeed(false) })

/** A fresh home; its repositories hold {@link GLOBAL_FILES} and an empty agent. */
export const makeImageHome = Effect.gen(function* () {
  const root = yield* temporaryFolder
  const home = join(root, "home")
  const global = makeGitRepo(join(root, "global"))
  const agent = makeGitRepo(join(root, "agent"))
  global.commit(GLOBAL_FILES)
  agent.commit({ "README.md": "nothing" })
  const sources = { global: { url: global.path, ref: "main" }, agent: { url: agent.path, ref: "main" } }
  const images = yield* Layer.build(
    Images.layer(home).pipe(Layer.provideMerge(reposLayer(home)), Layer.provide(folders))
  ).pipe(Effect.flatMap((context) => Effect.provide(Images, context)))
  /** What a hostile repository tries to create when one of its commands runs. */
  const marker = join(root, "pwned")
  return {
    root,
    home,
    global,
    agent,
    sources,
    images,
    marker,
    pwned: () => existsSync(marker),
    build: (options: BuildOptions = {}) => images.build(AGENT, sources, options)
  }
})
