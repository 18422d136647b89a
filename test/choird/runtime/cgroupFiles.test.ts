import { assert, describe, it } from "@effect/vitest"
import { groupParents, limitFiles, oomKillsIn, shareFile, usageFile, usedIn } from "#src/choird/runtime/cgroupFiles.ts"

const limits = { cpus: 1.5, memory_mb: 512, pids: 128 }

describe("groupParents", () => {
  it("finds the hierarchies of version 1, each at choird's own group", () => {
    const mounts = [
      "30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
      "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
      "32 24 0:28 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer",
      "33 24 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids"
    ].join("\n")
    const own = "12:pids:/user.slice\n7:cpu,cpuacct:/\n4:memory:/choir/d\n3:freezer:/\n"
    assert.deepStrictEqual(groupParents(mounts, own), [
      { version: 1, controllers: ["cpu", "cpuacct"], folders: ["/sys/fs/cgroup/cpu,cpuacct"], isRoot: true },
      { version: 1, controllers: ["memory"], folders: ["/sys/fs/cgroup/memory/choir/d"] },
      { version: 1, controllers: ["pids"], folders: ["/sys/fs/cgroup/pids/user.slice"] }
    ])
  })

  it("finds version 2 with choird's group and its ancestors, the nearest first", () => {
    const mounts = "24 30 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw"
    assert.deepStrictEqual(groupParents(mounts, "0::/user.slice/choird.service\n"), [
      {
        version: 2,
        controllers: ["cpu", "cpuacct", "memory", "pids"],
        folders: ["/sys/fs/cgroup/user.slice/choird.service", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]
      }
    ])
  })

  it("tells the root group of version 2 from a group below it, which a mount shows as its root", () => {
    const rootOf = (root: string, own: string) =>
      groupParents(`24 30 0:22 ${root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw`, own)[0]?.isRoot
    assert.isTrue(rootOf("/", "0::/\n"))
    assert.isUndefined(rootOf("/", "0::/init.scope\n"))
    assert.isUndefined(rootOf("/choir", "0::/choir\n"))
  })

  it("reads a mount of a part of the tree, escaped names, and the mount of a container that sees no more", () => {
    const part = "24 30 0:22 /choir /cg\\040two rw - cgroup2 cgroup2 rw"
    assert.deepStrictEqual(groupParents(part, "0::/choir/a\n")[0]?.folders, ["/cg two/a", "/cg two"])
    assert.deepStrictEqual(groupParents(part, "0::/other\n")[0]?.folders, ["/cg two"])
    assert.deepStrictEqual(groupParents("", ""), [])
  })
})

describe("limitFiles", () => {
  const files = (version: 1 | 2) =>
    limitFiles({ version, controllers: ["memory", "cpu", "pids"], folders: [] }, limits).map(({ file, text }) => [
      file,
      text
    ])

  it("writes version 1, and lets everybody else go first where processors are short", () => {
    assert.deepStrictEqual(files(1), [
      ["memory.limit_in_bytes", "536870912"],
      ["memory.memsw.limit_in_bytes", "536870912"],
      ["cpu.cfs_period_us", "100000"],
      ["cpu.cfs_quota_us", "150000"],
      ["cpu.shares", "512"],
      ["pids.max", "128"]
    ])
  })

  it("leaves an agent its whole share in the host's root group, among all processes", () => {
    const filesAt = (version: 1 | 2) =>
      limitFiles({ version, controllers: ["cpu"], folders: [], isRoot: true }, limits).map(({ file }) => file)
    assert.deepStrictEqual(filesAt(1), ["cpu.cfs_period_us", "cpu.cfs_quota_us"])
    assert.deepStrictEqual(filesAt(2), ["cpu.max"])
  })

  it("writes version 2, and lets everybody else go first where processors are short", () => {
    assert.deepStrictEqual(files(2), [
      ["memory.max", "536870912"],
      ["memory.swap.max", "0"],
      ["cpu.max", "150000 100000"],
      ["cpu.weight", "50"],
      ["pids.max", "128"]
    ])
  })

  it("gives a group that steps back a small part of what it gets otherwise", () => {
    const texts = (version: 1 | 2, more: { readonly isRoot?: true }) =>
      [false, true].map((isBack) => shareFile({ version, controllers: ["cpu"], folders: [], ...more }, isBack)?.text)
    assert.deepStrictEqual(texts(1, {}), ["512", "10"])
    assert.deepStrictEqual(texts(2, {}), ["50", "1"])
    assert.deepStrictEqual(texts(1, { isRoot: true }), ["1024", "102"])
    assert.deepStrictEqual(texts(2, { isRoot: true }), ["100", "10"])
    assert.isUndefined(shareFile({ version: 1, controllers: ["memory"], folders: [] }, true))
  })

  it("finds the time that a group has taken, in the files of both versions", () => {
    assert.strictEqual(usageFile({ version: 1, controllers: ["cpu", "cpuacct"], folders: [] }), "cpuacct.usage")
    assert.isUndefined(usageFile({ version: 1, controllers: ["cpu"], folders: [] }))
    assert.strictEqual(usageFile({ version: 2, controllers: ["cpu"], folders: [] }), "cpu.stat")
    assert.strictEqual(usedIn(1, "1500000\n"), 1500)
    assert.strictEqual(usedIn(2, "usage_usec 1500\nuser_usec 1000\n"), 1500)
    assert.isUndefined(usedIn(2, ""))
  })

  it("counts kills for want of memory in the files of both versions", () => {
    assert.strictEqual(oomKillsIn("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), 2)
    assert.strictEqual(oomKillsIn("oom_kill_disable 0\nunder_oom 0\noom_kill 1"), 1)
    assert.strictEqual(oomKillsIn(""), 0)
  })
})
