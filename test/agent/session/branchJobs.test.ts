/** Jobs with a branch of their own, with real git and everything real but choird and the model. */
import { execFileSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { LockRequest } from "#schema/Tool.ts"
import { layerWorktrees, Worktrees } from "#src/agent/git/Worktrees.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { endFacts } from "#src/shared/session/jobText.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, isCore, says, type Said, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool } from "../../support/testing/TestAgent.ts"
import { temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const leftOut = ensureDebianPackages(["git"], "worktrees")

const git = (cwd: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@localhost", ...args], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"]
  })
    .toString()
    .trim()

const spawn = (job_name: string, branch: string) =>
  ["choir.core.spawn", { job_name, task_spec: "dig", branch }] as const
const command = (text: string) =>
  calls(["choir.exec", { command: `export GIT_CONFIG_GLOBAL=/dev/null; ${text}`, network: false }])
const commit = "git add . && git -c user.name=A -c user.email=a@localhost commit -qm dug"

/** A workspace with one commit, and what an agent in it needs. */
const inRepository = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  git(root, "init", "--quiet", "--initial-branch=main")
  writeFileSync(join(root, "a.txt"), "first\n")
  git(root, "add", ".")
  git(root, "commit", "--quiet", "--message", "Begin")
  const services = yield* toolServices(root)
  /** Each life of an agent knows the worktrees that it opened. */
  const life = Effect.gen(function* () {
    const trees = yield* Effect.provide(
      Worktrees,
      yield* Layer.build(Layer.fresh(Layer.provide(layerWorktrees, Layer.succeedContext(services))))
    )
    const tool = yield* exec.pipe(Effect.provideContext(services), Effect.provideService(Worktrees, trees))
    return { trees, tool }
  })
  return { root, life }
})

const script = (edge: ReadonlyArray<Said>, job: ReadonlyArray<Said>): Script => {
  const [edgeSays, jobSays] = [inOrder(...edge), inOrder(...job)]
  return (messages, tools) => (isCore(messages) ? jobSays(messages, tools) : edgeSays(messages, tools))
}

const elsewhere = testTool("ws.write", () => Effect.succeed({ status: "success", summary: "written" }), {
  locks: [LockRequest.make({ resource: "file:a.txt", mode: "X" })]
})

describe.skipIf(leftOut !== undefined)("a job with a branch", () => {
  it.live("works in its worktree alone, and the user reads what it left", () =>
    Effect.gen(function* () {
      const { life, root } = yield* inRepository
      const { tool, trees } = yield* life
      const plane = yield* makeMemoryControlPlane
      const said = script(
        [calls(spawn("dig", "work/dig")), says("started"), says("it is dug")],
        [calls(["ws.write", {}]), command(`echo dug > b.txt && ${commit}`), says("done")]
      )
      yield* runAgent({ plane, script: said, tools: [tool, elsewhere] }).pipe(
        Effect.provideService(Worktrees, trees),
        Effect.forkScoped
      )
      yield* plane.say("go")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      const [start] = ofType(plane.events, "CoreStarted")
      assert.deepInclude(start?.payload.start, { branch: "work/dig", worktree: ".worktrees/dig" })
      const refused = ofType(plane.events, "ToolResultCommitted").filter(({ payload }) => payload.status === "rejected")
      assert.deepStrictEqual(
        refused.map(({ payload }) => payload.summary),
        ["the job works in its worktree and changes nothing else: use paths that begin with .worktrees/dig/"]
      )
      const ran = ofType(plane.events, "ToolCallCommitted").find(({ lane }) => lane === "core:dig")
      assert.deepStrictEqual(
        ran?.payload.locks.map(({ resource }) => resource),
        ["file:.worktrees/dig"]
      )
      const [stop] = ofType(plane.events, "CoreStopped")
      assert.deepInclude(stop?.payload.tree, { branch: "work/dig", commits: 1, uncommitted: 0, conflicts: [] })
      assert.match(
        stop === undefined ? "" : (endFacts(stop) ?? ""),
        /It left 1 commit on the branch work\/dig \([0-9a-f]{10}\)\.$/u
      )
      assert.strictEqual(git(root, "show", "work/dig:b.txt"), "dug")
      assert.isFalse(existsSync(join(root, "b.txt")))
      yield* plane.until((_, state) => quiet(state))
      yield* trees.sweep(new Set())
      assert.isFalse(existsSync(join(root, ".worktrees/dig")))
    })
  )

  it.live("is refused where a running job has the branch, and where there is no repository", () =>
    Effect.gen(function* () {
      const { life } = yield* inRepository
      const { tool, trees } = yield* life
      const plane = yield* makeMemoryControlPlane
      const said = script(
        [calls(spawn("dig", "work"), spawn("rake", "work")), says("started"), says("it is dug")],
        [says("done")]
      )
      yield* runAgent({ plane, script: said, tools: [tool] }).pipe(
        Effect.provideService(Worktrees, trees),
        Effect.forkScoped
      )
      yield* plane.say("go")
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      const results = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload.summary)
      assert.isTrue(
        results.some((text) => /the job dig works on the branch work|checked out in \.worktrees\/dig/u.test(text))
      )
      assert.lengthOf(ofType(plane.events, "CoreStarted"), 1)
      const other = yield* makeMemoryControlPlane
      yield* Effect.forkScoped(
        runAgent({ plane: other, script: script([calls(spawn("dig", "work")), says("no")], []), tools: [] })
      )
      yield* other.say("go")
      yield* other.until((events, state) => spoken(events).length === 1 && quiet(state))
      assert.match(
        ofType(other.events, "ToolResultCommitted")[0]?.payload.summary ?? "",
        /cannot run commands, so no job can have a branch: leave branch out/u
      )
    })
  )

  it.live("continues in its worktree after a kill, and what a kill left of others goes", () =>
    Effect.gen(function* () {
      const { life, root } = yield* inRepository
      const plane = yield* makeMemoryControlPlane
      const wrote = yield* Deferred.make<void>()
      const first: Script = (messages, tools) =>
        isCore(messages)
          ? messages.some(({ role }) => role === "tool")
            ? Effect.andThen(Deferred.succeed(wrote, undefined), Effect.never)
            : Effect.succeed(command("echo half > b.txt"))
          : script([calls(spawn("dig", "work")), says("started")], [])(messages, tools)
      const edge = inOrder(calls(spawn("dig", "work")), says("started"))
      const before = yield* life
      const running = yield* runAgent({
        plane,
        script: (messages, tools) => (isCore(messages) ? first(messages, tools) : edge(messages, tools)),
        tools: [before.tool]
      }).pipe(Effect.provideService(Worktrees, before.trees), Effect.forkScoped)
      yield* plane.say("go")
      yield* Deferred.await(wrote)
      plane.cutOff()
      yield* Fiber.interrupt(running)
      // A worktree whose job ended just before the kill.
      git(root, "worktree", "add", "--quiet", "-b", "old", join(root, ".worktrees/old"), "HEAD")
      const after = yield* life
      const second = script([says("it is dug")], [command(`cat b.txt && ${commit}`), says("done")])
      yield* runAgent({ plane, epoch: 2, script: second, tools: [after.tool] }).pipe(
        Effect.provideService(Worktrees, after.trees),
        Effect.forkScoped
      )
      yield* plane.until((events, state) => ofType(events, "CoreStopped").length === 1 && quiet(state))
      const [stop] = ofType(plane.events, "CoreStopped")
      assert.deepInclude(stop?.payload, { outcome: "completed" })
      assert.deepInclude(stop?.payload.tree, { commits: 1, uncommitted: 0 })
      assert.strictEqual(git(root, "show", "work:b.txt"), "half")
      assert.isFalse(existsSync(join(root, ".worktrees/old")))
      assert.isNotEmpty(git(root, "rev-parse", "old"))
    })
  )
})
