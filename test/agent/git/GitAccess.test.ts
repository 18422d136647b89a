import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SecretName } from "#schema/Ids.ts"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { external } from "#src/agent/tools/external.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { ToolManifest } from "#schema/Tool.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { makeRemoteRepo, newestCommit, startGitHttps, startSshd } from "../../support/gitServers.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { callIdOf, laneThatSaw } from "../../support/workspace.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"

const leftOut = ensureDebianPackages(["git", "openssh-client", "openssh-server"], "git remotes")
const SECRET = SecretName.make("git")
const HELPER = [process.execPath, join(import.meta.dirname, "../../../dist/choir-agent.js"), "git-cred-helper"]

/** The parts of an agent that leases this identity, and a shell of one of its calls. */
const withIdentity = Effect.fnUntraced(function* (identity: Partial<GitIdentity>, secret: string) {
  const git_identity = { name: `Ada "the" Agent`, email: "ada@example.org", secret: SECRET, ...identity }
  const config = { ...agentConfig(), git_identity }
  const base = Layer.mergeAll(
    AgentSettings.layer(settingsOf(1, config)),
    SecretStore.layer,
    ProcessRunner.layer({ ownsPidNamespace: false })
  )
  const context = yield* Layer.build(GitAccess.layer({ helper: HELPER }).pipe(Layer.provideMerge(base)))
  const parts = yield* Effect.provide(
    Effect.all({ git: GitAccess, store: SecretStore, processes: ProcessRunner, settings: AgentSettings }),
    context
  )
  yield* parts.store.replaceAll(new Map([[SECRET, Redacted.make(secret)]]))
  const cwd = yield* temporaryFolder
  let calls = 0
  const run = Effect.fnUntraced(function* (script: string) {
    const call_id = callIdOf(`git-${++calls}`)
    const { env, scrub } = yield* parts.git.forCall(call_id)
    const command = { command: "/bin/sh", args: ["-c", script], cwd, timeout_ms: 60_000, env }
    const { exit_code, stderr, stdout, survivors } = yield* parts.processes.run(call_id, command)
    assert.strictEqual(survivors, 0)
    return { code: exit_code, out: scrub(stdout.text), raw: stdout.text, err: stderr.text, env }
  })
  return { ...parts, context, run, cwd }
})

describe.skipIf(leftOut !== undefined)("the git identity of an agent", () => {
  it.live("clones, commits and pushes over https with a token that no file, argument or environment holds", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const bare = makeRemoteRepo(root, "app.git")
      const server = yield* startGitHttps({ root, user: "bot", password: "canary-token" })
      const { cwd, run } = yield* withIdentity({ remotes: [`https://${server.host}/app.git`] }, "bot:canary-token")
      const pushed = yield* run(
        `export GIT_SSL_CAINFO=${server.cert}; git clone -q https://${server.host}/app.git app && cd app &&
         echo more >> README && git commit -qam "second" && git push -q origin main && env && git config --list --show-origin`
      )
      assert.strictEqual(pushed.code, 0, pushed.err)
      assert.strictEqual(
        newestCommit(bare),
        `Ada "the" Agent <ada@example.org> / Ada "the" Agent <ada@example.org>: second`
      )
      assert.notInclude(pushed.raw, "canary")
      for (const name of readdirSync(cwd, { recursive: true, encoding: "utf8" })) {
        const file = join(cwd, name)
        if (existsSync(file) && !readdirSyncSafe(file)) assert.notInclude(readFileSync(file, "latin1"), "canary", name)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is also that of git in a tool whose manifest names the identity's secret, and of git in no other tool", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const bare = makeRemoteRepo(root, "app.git")
      const server = yield* startGitHttps({ root, user: "bot", password: "canary-token" })
      const remote = `https://${server.host}/app.git`
      const { context, cwd } = yield* withIdentity({ remotes: [remote] }, "bot:canary-token")
      const script = join(cwd, "push")
      writeFileSync(
        script,
        `#!/bin/sh
exec 2>&1
export GIT_SSL_CAINFO=${server.cert} GIT_TERMINAL_PROMPT=0
cd "$(mktemp -d ${cwd}/XXXXXX)" && git clone -q ${remote} app && cd app && echo more >> README &&
  git commit -qam "by a tool" && git push -q origin main >/dev/null && echo '"pushed"' || { echo '"failed"'; git config user.name; }
`
      )
      chmodSync(script, 0o755)
      const toolOf = (secret_resources: ReadonlyArray<string>) =>
        external(
          Schema.decodeUnknownSync(ToolManifest)({
            llm: { name: "repo.push", description: "Pushes.", input_schema: { type: "object" } },
            runtime: { exec_path: "push", network: true, secret_resources }
          }),
          script
        ).pipe(Effect.provide(Layer.merge(Layer.succeedContext(context), Workspace.layer({ root: cwd }))))
      const answerOf = Effect.fnUntraced(function* (secret_resources: ReadonlyArray<string>, call: string) {
        const tool = yield* toolOf(secret_resources)
        return yield* (yield* tool.prepare({})).run({ ...laneThatSaw(), call_id: callIdOf(call) })
      })
      const before = newestCommit(bare)
      const without = yield* answerOf([], "s-2-1-0")
      assert.notDeepInclude(without, { output: "pushed" })
      assert.strictEqual(newestCommit(bare), before)
      const answer = yield* answerOf(["git_identity"], "s-2-2-0")
      assert.deepInclude(answer, { status: "success", output: "pushed" })
      assert.match(newestCommit(bare), /^Ada "the" Agent <ada@example\.org> .*: by a tool$/u)
    }).pipe(Effect.scoped)
  )

  it.live("gives the token to no other host, and to nobody but git of a running call", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      makeRemoteRepo(root, "app.git")
      const server = yield* startGitHttps({ root, user: "bot", password: "canary-token" })
      const { env, run } = yield* Effect.map(
        withIdentity({ remotes: [`https://${server.host}/other`] }, "bot:canary-token"),
        (it) => ({
          ...it,
          env: { GIT_SSL_CAINFO: server.cert }
        })
      )
      const refused = yield* run(`GIT_SSL_CAINFO=${env.GIT_SSL_CAINFO} git clone -q https://${server.host}/app.git app`)
      assert.notStrictEqual(refused.code, 0)
      assert.include(refused.err, `has no credentials; the operator allows https://${server.host}/other`)
      assert.isFalse(server.refused.some((header) => header !== ""))
      // The helper by itself, in a call but not below git.
      const ask = `printf 'protocol=https\\nhost=${server.host}\\npath=other/x\\n'`
      const alone = yield* run(`${ask} | sh -c "$(git config --get-all credential.helper | sed -n 's/^!exec //p') get"`)
      assert.deepStrictEqual(
        [alone.raw, alone.err.trim()],
        ["", "choir: only git commands of a running call get credentials"]
      )
      // Below git it is answered, and what a call prints of it is taken out.
      const filled = yield* run(`${ask} | git credential fill`)
      assert.include(filled.raw, "password=canary-token")
      assert.include(filled.out, "password=<redacted>")
    }).pipe(Effect.scoped)
  )

  it.live("a new value of the secret is used at the next call (R35)", () =>
    Effect.gen(function* () {
      const { run, store } = yield* withIdentity({ remotes: ["https://git.example.org/"] }, "old-token")
      const fill = `printf 'protocol=https\\nhost=git.example.org\\npath=x\\n' | git credential fill`
      assert.include((yield* run(fill)).raw, "password=old-token")
      yield* store.replaceAll(new Map([[SECRET, Redacted.make("new-token")]]))
      assert.include((yield* run(fill)).raw, "password=new-token")
    }).pipe(Effect.scoped)
  )

  it.live(
    "clones, commits and pushes over ssh with a key that is in no file, and shows it to the allowed host alone",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryFolder
        const bare = makeRemoteRepo(root, "app.git")
        const sshd = yield* startSshd()
        const { key, known_hosts, port } = sshd
        const { processes: _, run } = yield* withIdentity(
          { remotes: [`ssh://root@127.0.0.1:${port}`], known_hosts },
          key
        )
        const pushed = yield* run(
          `git clone -q ssh://127.0.0.1:${port}${bare} app && cd app && echo more >> README && git commit -qam "by ssh" && git push -q origin main`
        )
        assert.strictEqual(pushed.code, 0, `${pushed.err}\n${sshd.said()}`)
        assert.strictEqual(
          newestCommit(bare),
          `Ada "the" Agent <ada@example.org> / Ada "the" Agent <ada@example.org>: by ssh`
        )
        const other = yield* run(`git ls-remote ssh://root@localhost:${port}${bare}`)
        assert.notStrictEqual(other.code, 0)
        const folder = (yield* run('dirname "$GIT_CONFIG_GLOBAL"')).raw.trim()
        for (const name of readdirSync(folder).filter((each) => !["agent", "credentials"].includes(each)))
          assert.notInclude(readFileSync(join(folder, name), "latin1"), "PRIVATE KEY", name)
      }).pipe(Effect.scoped)
  )

  it.live("says why a key cannot be used, runs the command all the same, and loads a better one later", () =>
    Effect.gen(function* () {
      const { key, known_hosts, port } = yield* startSshd()
      const broken = "-----BEGIN OPENSSH PRIVATE KEY-----\nbroken\n-----END OPENSSH PRIVATE KEY-----"
      const { run, store } = yield* withIdentity({ remotes: [`ssh://root@127.0.0.1:${port}`], known_hosts }, broken)
      assert.strictEqual((yield* run("echo works")).raw, "works\n")
      yield* store.replaceAll(new Map([[SECRET, Redacted.make(key)]]))
      const hello = yield* run(`$(git config core.sshCommand | sed "s/'//g") -p ${port} 127.0.0.1 echo hello`)
      assert.deepStrictEqual([hello.raw, hello.code], ["hello\n", 0], hello.err)
    }).pipe(Effect.scoped)
  )

  it.live("leaves no process and no folder behind", () =>
    Effect.gen(function* () {
      // The temporary folder is shared with tests of other workers, so only this identity's own folder is looked at.
      const folder = yield* Effect.scoped(
        Effect.gen(function* () {
          const { run } = yield* withIdentity({}, "token")
          const asked = yield* run('git config user.email && dirname "$GIT_CONFIG_GLOBAL"')
          const [email, folder = ""] = asked.raw.split("\n")
          assert.strictEqual(email, "ada@example.org")
          assert.strictEqual(dirname(folder), tmpdir())
          assert.isTrue(existsSync(folder))
          return folder
        })
      )
      assert.isFalse(existsSync(folder))
    })
  )
})

const readdirSyncSafe = (path: string): boolean => {
  try {
    readdirSync(path)
    return true
  } catch {
    return false
  }
}
