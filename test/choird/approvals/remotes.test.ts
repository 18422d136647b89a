/** What was approved reaches real git servers as the agent's git identity, over https and ssh (R54). */
import { execFileSync, spawn } from "node:child_process"
import { dirname, join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { withVariable } from "../../support/environment.ts"
import { describeStores, temporaryFolder } from "../../support/engines.ts"
import { startGitHttps, startSshd } from "../../support/gitServers.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { openProposals, pushBranch, type Remote, TOOL } from "../../support/proposals.ts"

const LIVE = { timeout: 300_000 }
const ROBOT = "Robot <robot@example.org>"

type Place = NonNullable<NonNullable<Parameters<typeof openProposals>[0]>["remote"]>

/** A tool ends as the agent's own commit on the server's branch. */
const commits = Effect.fnUntraced(function* (remote: Place) {
  const { carried, home, life, propose } = yield* openProposals({ remote })
  yield* life.execute
  const { outcome, status } = yield* carried((yield* propose("tool", TOOL)).approval_id)
  assert.strictEqual(status, "done", outcome)
  assert.strictEqual(home.agent.git(["log", "-1", "--format=%an <%ae>", "main"]), ROBOT)
})

/** A branch ends as the newest commit of the server's main. */
const merges = Effect.fnUntraced(function* (remote: Place) {
  const { carried, home, life, propose, session_id } = yield* openProposals({ remote })
  yield* life.execute
  const branch = `proposal/${session_id}/soul`
  const commit = pushBranch(home, branch, { "identity/SOUL.md": "calm\n" })
  const { outcome, status } = yield* carried(
    (yield* propose("repo_change", { branch, commit, reason: "be calm" })).approval_id
  )
  assert.strictEqual(status, "done", outcome)
  assert.strictEqual(home.head(), commit)
})

/** Why the server cannot be looked at, so that nobody is asked. */
const refusal = Effect.fnUntraced(function* (remote: Place) {
  const { home, propose } = yield* openProposals({ remote })
  const error = yield* Effect.flip(propose("tool", TOOL))
  assert.strictEqual(home.head(), home.base)
  return String(error)
})

const overHttps = (remotes: (host: string) => ReadonlyArray<string>, secret = "bot:canary-token") =>
  Effect.fnUntraced(function* (path: string) {
    const server = yield* startGitHttps({ root: dirname(path), user: "bot", password: "canary-token" })
    yield* withVariable("GIT_SSL_CAINFO", undefined)
    yield* withVariable("SSL_CERT_FILE", server.cert)
    const identity = { remotes: remotes(server.host) } as NonNullable<Remote["identity"]>
    return { url: `https://${server.host}/agent/.git`, identity, secret }
  })

describeStores("Executions over https", (it) => {
  it.effect(
    "commit and push with the token of the agent's identity",
    () => commits(overHttps((host) => [`https://${host}/agent`])),
    LIVE
  )

  it.effect(
    "reach no server that the identity does not list, and say so without the token (D14)",
    () =>
      Effect.gen(function* () {
        for (const remotes of [() => [], (host: string) => [`https://${host}/other`]]) {
          const words = yield* refusal(overHttps(remotes))
          assert.match(words, /Check the secret and the remotes of the agent's git identity/u)
          assert.notInclude(words, "canary")
        }
        assert.notInclude(yield* refusal(overHttps((host) => [`https://${host}/`], "bot:canary-wrong")), "canary")
      }),
    LIVE
  )
})

const leftOut = ensureDebianPackages(["openssh-server", "openssh-client"], "pushes over ssh")

/** An ssh-agent of the user that runs choird, with a key that the server takes. */
const agentOfHost = (key: string) =>
  Effect.gen(function* () {
    const socket = join(yield* temporaryFolder, "agent")
    const child = spawn("ssh-agent", ["-D", "-a", socket], { stdio: ["ignore", "pipe", "ignore"] })
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
    yield* Effect.callback<void>((resume) => void child.stdout.once("data", () => resume(Effect.void)))
    execFileSync("ssh-add", ["-q", "-"], { input: key, env: { ...process.env, SSH_AUTH_SOCK: socket } })
    yield* withVariable("SSH_AUTH_SOCK", socket)
  })

interface SshOptions {
  /** Whether the identity has the server's key. */
  readonly isKnown?: boolean
  /** Whether the identity's key is another one than the server's, which only the host's own ssh-agent has. */
  readonly isOther?: boolean
}

const overSsh = (
  remotes: (address: string) => ReadonlyArray<string>,
  { isKnown = true, isOther = false }: SshOptions = {}
) =>
  Effect.fnUntraced(function* (path: string) {
    const { key, known_hosts, port } = yield* startSshd()
    const address = `ssh://root@127.0.0.1:${port}`
    const identity = { remotes: remotes(address), ...(isKnown ? { known_hosts } : {}) }
    yield* agentOfHost(key)
    const secret = isOther ? (yield* startSshd()).key : key
    return { url: `${address}${path}`, identity, secret }
  })

describe.skipIf(leftOut !== undefined)("ssh", () => {
  describeStores("Executions over ssh", (it) => {
    it.effect(
      "merge and push with the key of the agent's identity, and believe its known_hosts alone",
      () => merges(overSsh((address) => [address])),
      LIVE
    )

    it.effect(
      "use no key of the host, and believe no host that is not known",
      () =>
        Effect.gen(function* () {
          assert.match(
            yield* refusal(overSsh((address) => [address], { isKnown: false })),
            /Add the host's key to known_hosts/u
          )
          assert.match(
            yield* refusal(overSsh((address) => [address], { isOther: true })),
            /Check the secret and the remotes/u
          )
          assert.match(yield* refusal(overSsh(() => [])), /it cannot be pushed/u)
        }),
      LIVE
    )
  })
})
