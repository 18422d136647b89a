/** A workspace on a file system that does not answer: what is asked of it ends at its deadline, and nothing else waits for it. */
import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { leaveOut } from "../support/packages.ts"
import { temporaryWorkspace } from "../support/workspace.ts"

/** Mounts a FUSE file system whose server never says a word, and keeps it until it is killed. */
const MOUNT = [
  "open(my $f, '+<', '/dev/fuse') or die qq($!);",
  "my ($s, $t, $o) = ('hung', 'fuse', 'fd=' . fileno($f) . ',rootmode=40000,user_id=0,group_id=0');",
  `syscall(${process.arch === "arm64" ? 40 : 165}, $s, $ARGV[0], $t, 0, $o) == 0 or die qq($!);`,
  "$| = 1; print qq(mounted\\n); sleep"
].join(" ")

const hung = (folder: string) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof spawn>>((resume) => {
      const server = spawn("perl", ["-e", MOUNT, folder], { stdio: ["ignore", "pipe", "inherit"] })
      server.stdout?.once("data", () => resume(Effect.succeed(server)))
      server.once("exit", (code) => resume(Effect.die(`the mount ended with ${code}`)))
    }),
    (server) =>
      Effect.sync(() => {
        server.kill("SIGKILL")
        spawnSync("umount", ["-l", folder])
      })
  )

const suite = "a workspace that hangs"
const canMount =
  process.getuid?.() === 0 && existsSync("/dev/fuse") && /\bfuse$/mu.test(readFileSync("/proc/filesystems", "utf8"))
const reason = canMount ? undefined : leaveOut(suite, "it needs root and FUSE")

describe.skipIf(reason !== undefined)(suite, () => {
  it.live("ends a call at its deadline and serves other files meanwhile", () =>
    Effect.gen(function* () {
      const { root } = yield* temporaryWorkspace
      mkdirSync(join(root, "hung"))
      writeFileSync(join(root, "file"), "here")
      yield* hung(join(root, "hung"))
      yield* Effect.gen(function* () {
        const workspace = yield* Workspace
        for (const asked of [Effect.asVoid(workspace.read("hung/file")), Effect.asVoid(workspace.list("hung"))])
          assert.isTrue(Option.isNone(yield* Effect.timeoutOption(asked, 100)))
        assert.strictEqual(Buffer.from((yield* workspace.read("file")).bytes).toString(), "here")
      }).pipe(Effect.provide(Workspace.layer({ root })))
    }).pipe(Effect.scoped)
  )
})

describe("the file tools and the worktrees of an agent", () => {
  it("never wait on the agent's own thread", () => {
    for (const name of ["workspace/Workspace.ts", "workspace/workspaceFiles.ts", "git/Worktrees.ts"]) {
      const text = readFileSync(join(import.meta.dirname, "../../src/agent", name), "utf8")
      // The workspace itself is opened before the agent has said hello.
      assert.deepStrictEqual(text.match(/\b\w+Sync\(/gu) ?? [], name.endsWith("Workspace.ts") ? ["openSync("] : [])
    }
  })
})
