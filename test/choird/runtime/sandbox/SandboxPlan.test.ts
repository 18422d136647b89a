import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { specError } from "#src/choird/runtime/AgentCommand.ts"
import { SANDBOX_UID_COUNT, SANDBOX_UID_FIRST, uidOf, workspaceProblem } from "#src/choird/runtime/Ownership.ts"
import type { ContainerSpec } from "#src/choird/runtime/ContainerRuntime.ts"
import { classifyExit } from "#src/choird/runtime/HostContainer.ts"
import { boundSources, bwrapArguments, plainChain, rootChain } from "#src/choird/runtime/sandbox/SandboxPlan.ts"

const sources = { workspace: "/w", socket_dir: "/s", choir: "/c", node: "/n", init: "/i", program: "/p", rg: "/r" }
const host = {
  topFolders: [{ name: "bin", link: "usr/bin" }, { name: "lib64" }],
  procFolders: ["/proc/sys"],
  hasFilter: true
}

describe("SandboxPlan", () => {
  const args = bwrapArguments(host, { TOKEN: "secret" }, sources).split("\0")
  const writable = args.flatMap((argument, index) => (argument === "--bind" ? [args[index + 2]] : []))

  it("binds nothing writable but the workspace, and the filter only where there is one", () => {
    assert.deepStrictEqual(writable, ["/workspace"])
    assert.include(args, "--seccomp")
    assert.notInclude(bwrapArguments({ ...host, hasFilter: false }, {}), "--seccomp")
    assert.strictEqual(args.at(-1), "")
  })

  it.each([
    ["code", "/opt/choir/choir-agent.code.js"],
    ["cache", "/opt/choir/choir-agent.cache"],
    ["vocabulary", "/opt/choir/choir-agent.o200k"],
    ["apart", "/opt/choir/choir-agent.apart"]
  ] as const)("gives the %s along with the program, where there is one", (part, inside) => {
    assert.notInclude(args, inside)
    const more = bwrapArguments(host, {}, { ...sources, [part]: "/v" }).split("\0")
    assert.deepStrictEqual(more.slice(more.indexOf("/v") - 1, more.indexOf("/v") + 2), ["--ro-bind-try", "/v", inside])
    const chain = rootChain(42, 1234, ["true"], { ...sources, [part]: "/v" })
    assert.deepStrictEqual(chain.slice(chain.indexOf("/v") - 1, chain.indexOf("/v") + 2), ["f", "/v", part])
    assert.notInclude(rootChain(42, 1234, ["true"], sources), part)
  })

  it("drops every capability, takes namespaces of its own, and closes the root after the last bind", () => {
    for (const flag of [
      "--unshare-user",
      "--unshare-pid",
      "--unshare-ipc",
      "--unshare-uts",
      "--disable-userns",
      "--die-with-parent",
      "--clearenv"
    ]) {
      assert.include(args, flag)
    }
    assert.strictEqual(args[args.indexOf("--cap-drop") + 1], "ALL")
    assert.isAbove(args.lastIndexOf("--remount-ro"), args.lastIndexOf("--ro-bind"))
  })

  it("never runs bubblewrap as root: the uid is given up for good before it", () => {
    const chain = rootChain(42, 1234, ["true"], sources)
    assert.isBelow(chain.indexOf("--reuid=1234"), chain.indexOf("bwrap"))
    for (const flag of [
      "--regid=1234",
      "--clear-groups",
      "--bounding-set=-all",
      "--no-new-privs",
      "--pdeathsig=KILL"
    ]) {
      assert.isAbove(chain.indexOf(flag), chain.indexOf("setpriv"))
      assert.isBelow(chain.indexOf(flag), chain.indexOf("bwrap"))
    }
    assert.strictEqual(boundSources(1234).workspace, "/run/choir/1234/workspace")
    assert.strictEqual(plainChain(42, ["true"])[0], "setpriv")
  })
})

describe("uidOf", () => {
  const [one, other] = [AgentId.make("one"), AgentId.make("other")]

  it("is the same at each start, within the range, and the next free one when another agent has it", () => {
    const uid = uidOf(one, [])
    assert.isTrue(uid >= SANDBOX_UID_FIRST && uid < SANDBOX_UID_FIRST + SANDBOX_UID_COUNT)
    assert.strictEqual(uidOf(one, [{ agent_id: one, uid }]), uid)
    const next = uidOf(one, [{ agent_id: other, uid }])
    assert.strictEqual(
      (next - SANDBOX_UID_FIRST) % SANDBOX_UID_COUNT,
      (uid + 1 - SANDBOX_UID_FIRST) % SANDBOX_UID_COUNT
    )
  })
})

describe("workspaceProblem", () => {
  it.each(["/", "/etc", "/usr/share", "/home", "/tmp", "/var/lib", "/srv/choir", "/srv", "/proc/1/cwd"])(
    "refuses %s",
    (path) => {
      assert.isDefined(workspaceProblem(path, ["/srv/choir/images"]))
    }
  )
  it.each(["/home/ada/work", "/srv/choir/images-of-cats", "/tmp/a", "/root/project", "/var/lib/choir/ws"])(
    "takes %s",
    (path) => {
      assert.isUndefined(workspaceProblem(path, ["/srv/choir/images"]))
    }
  )
})

describe("specError", () => {
  const spec: ContainerSpec = {
    ...sources,
    agent_id: AgentId.make("one"),
    agent_number: 0,
    session_id: SessionId.make("0123456789abcdef"),
    epoch: 1,
    image_version: ImageVersion.make("abcdef0"),
    image: "/i",
    bootstrap_token: Redacted.make("token"),
    limits: { cpus: 1, memory_mb: 1, pids: 1 }
  }
  it("refuses what would change the meaning of a command line", () => {
    assert.isUndefined(specError(spec))
    for (const wrong of [
      { workspace: "relative" },
      { rg: "/a\0--bind" },
      { bootstrap_token: Redacted.make("a\0b") },
      { bootstrap_token: Redacted.make("") },
      { limits: { cpus: 0, memory_mb: 1, pids: 1 } },
      { limits: { cpus: 1, memory_mb: Number.NaN, pids: 1 } }
    ]) {
      const error = specError({ ...spec, ...wrong })
      assert.strictEqual(error?.reason, "refused")
      assert.notInclude(error?.message, "a\0b")
    }
  })
})

describe("classifyExit", () => {
  const facts = { killed: false, oomKills: 0, ranAgent: true }
  it.each([
    [{ code: 0, signal: null }, facts, { code: 0, signal: null, reason: "exited" }],
    [{ code: 137, signal: null }, facts, { code: null, signal: "SIGKILL", reason: "signalled" }],
    [
      { code: 137, signal: null },
      { ...facts, oomKills: 1 },
      { code: null, signal: "SIGKILL", reason: "out_of_memory" }
    ],
    [
      { code: null, signal: "SIGKILL" },
      { ...facts, killed: true, oomKills: 1 },
      { code: null, signal: "SIGKILL", reason: "killed" }
    ],
    [
      { code: 134, signal: null },
      { ...facts, oomKills: 1 },
      { code: null, signal: "SIGABRT", reason: "signalled" }
    ],
    [
      { code: 1, signal: null },
      { ...facts, ranAgent: false },
      { code: 1, signal: null, reason: "setup_failed" }
    ],
    [
      { code: 127, signal: null },
      { ...facts, ranAgent: undefined },
      { code: 127, signal: null, reason: "setup_failed" }
    ]
  ])("takes %o with %o for %o", (status, given, expected) => {
    assert.deepStrictEqual(classifyExit(status, given), expected as ReturnType<typeof classifyExit>)
  })
})
