import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { dockerProfile } from "#src/choird/runtime/docker/dockerProfile.ts"
import { installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { type InspectedContainer, profileDifferences } from "#src/choird/runtime/docker/profileDifferences.ts"

const TOKEN = "b00tstrap-secret"
const profile = dockerProfile({
  spec: {
    agent_id: AgentId.make("dev"),
    agent_number: 0,
    session_id: SessionId.make("0123456789abcdef"),
    epoch: 1,
    image_version: ImageVersion.make("abcdef0"),
    image: "/i",
    program: "/p",
    node: "/n",
    rg: "/r",
    socket_dir: "/s",
    workspace: "/w",
    bootstrap_token: Redacted.make(TOKEN),
    limits: { cpus: 1.5, memory_mb: 512, pids: 128 }
  },
  installation: installationOf("/home/x"),
  workspace: "/w",
  socket_dir: "/s",
  user: { uid: 10_007, gid: 10_007 },
  oci_runtime: undefined
})

const { HostConfig } = profile

/** What an engine answers that made what was asked, as 20.10 spells it. */
const faithful = () => ({
  Image: `sha256:${"0".repeat(64)}`,
  AppArmorProfile: "",
  Config: {
    Hostname: "choir",
    Domainname: "",
    User: "10007:10007",
    Tty: false,
    OpenStdin: false,
    StdinOnce: false,
    Cmd: null,
    Env: [...profile.Env, "IMAGE=1"],
    Entrypoint: profile.Entrypoint,
    Image: profile.Image,
    Volumes: null,
    WorkingDir: "/workspace",
    Labels: { ...profile.Labels, extra: "1" },
    Healthcheck: { Test: ["NONE"] },
    StopSignal: "SIGTERM"
  },
  HostConfig: {
    ...HostConfig,
    Mounts: HostConfig.Mounts.map(({ ReadOnly, ...mount }) => (ReadOnly ? { ...mount, ReadOnly } : mount)).toReversed(),
    RestartPolicy: { Name: "no", MaximumRetryCount: 0 },
    Binds: null,
    CapAdd: null,
    PidMode: "",
    UTSMode: "",
    UsernsMode: "",
    Runtime: "runc",
    ConsoleSize: [0, 0],
    Devices: null,
    OomScoreAdj: 0,
    MemorySwappiness: null,
    OomKillDisable: false,
    Isolation: "",
    MaskedPaths: ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware", "/proc/scsi"],
    ReadonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
  },
  Mounts: HostConfig.Mounts.map(({ ReadOnly, Source, Target }) => ({
    Type: "bind",
    Source,
    Destination: Target,
    Mode: "",
    RW: !ReadOnly,
    Propagation: "rprivate"
  })),
  NetworkSettings: { Networks: { [HostConfig.NetworkMode]: {} } }
})

const host = (name: string, value: unknown) => {
  const made = faithful()
  return profileDifferences(profile, { ...made, HostConfig: { ...made.HostConfig, [name]: value } })
}
const config = (name: string, value: unknown) => {
  const made = faithful()
  return profileDifferences(profile, { ...made, Config: { ...made.Config, [name]: value } })
}

describe("profileDifferences", () => {
  it("finds none in what was asked for (R36)", () => {
    assert.deepStrictEqual(profileDifferences(profile, faithful()), [])
  })

  const settings: ReadonlyArray<readonly [name: string, value: unknown]> = [
    ["Privileged", true],
    ["CapAdd", ["SYS_ADMIN"]],
    ["CapDrop", null],
    ["CapDrop", ["NET_RAW"]],
    ["SecurityOpt", ["no-new-privileges:true", "seccomp=unconfined"]],
    ["SecurityOpt", null],
    ["ReadonlyRootfs", false],
    ["PidMode", "host"],
    ["IpcMode", "host"],
    ["UTSMode", "host"],
    ["UsernsMode", "host"],
    ["CgroupnsMode", "host"],
    ["NetworkMode", "host"],
    ["NetworkMode", "container:other"],
    ["Devices", [{ PathOnHost: "/dev/kvm" }]],
    ["DeviceRequests", [{ Driver: "nvidia" }]],
    ["DeviceCgroupRules", ["a *:* rwm"]],
    ["Binds", ["/var/run/docker.sock:/x"]],
    ["VolumesFrom", ["other"]],
    ["Mounts", [...HostConfig.Mounts, { Type: "bind", Source: "/", Target: "/host" }]],
    ["Tmpfs", { "/tmp": "" }],
    ["Memory", 0],
    ["MemorySwap", -1],
    ["NanoCpus", 0],
    ["PidsLimit", null],
    ["Ulimits", null],
    ["OomKillDisable", true],
    ["OomScoreAdj", -1000],
    ["RestartPolicy", { Name: "always", MaximumRetryCount: 0 }],
    ["AutoRemove", true],
    ["PortBindings", { "80/tcp": [{ HostPort: "80" }] }],
    ["PublishAllPorts", true],
    ["ExtraHosts", ["a:1.2.3.4"]],
    ["GroupAdd", ["docker"]],
    ["Sysctls", { "net.ipv4.ip_forward": "1" }],
    ["CgroupParent", "/"],
    ["LogConfig", { Type: "none", Config: {} }],
    ["MaskedPaths", []],
    ["ReadonlyPaths", ["/proc/bus"]],
    ["ShmSize", 1 << 40],
    ["ASettingOfTheFuture", "on"]
  ]
  for (const [name, value] of settings)
    it(`finds HostConfig.${name} ${JSON.stringify(value)} (R36)`, () => {
      const found = host(name, value)
      assert.strictEqual(found.length, 1)
      assert.match(found[0] ?? "", new RegExp(`^HostConfig.${name} is`, "u"))
    })

  it("finds what an image changed, and shows no value of the environment", () => {
    assert.deepStrictEqual(config("Env", ["AGENT_ID=other"]), ["Config.Env is not what was asked"])
    assert.deepStrictEqual(config("User", "1000"), ['Config.User is "1000"'])
    for (const [name, value] of [
      ["Entrypoint", ["/bin/sh"]],
      ["Cmd", ["--inspect"]],
      ["Volumes", { "/data": {} }],
      ["Healthcheck", { Test: ["CMD", "x"] }],
      ["Tty", true],
      ["WorkingDir", "/"],
      ["Labels", {}],
      ["Image", "other"]
    ] as const)
      assert.strictEqual(config(name, value).length, 1, name)
    assert.notInclude(profileDifferences(profile, { ...faithful(), Config: {} }).join(), TOKEN)
  })

  it("finds another mount, a writable socket folder, another network and no AppArmor", () => {
    const made = faithful()
    const [workspace, socket] = made.Mounts
    const volume = { Type: "volume", Source: "/v", Destination: "/data", RW: true, Propagation: "" }
    const of = (mounts: InspectedContainer["Mounts"]) => profileDifferences(profile, { ...made, Mounts: mounts })
    assert.strictEqual(of([...made.Mounts, volume]).length, 1)
    assert.strictEqual(of([{ ...workspace }, { ...socket, RW: true }]).length, 1)
    assert.strictEqual(of([{ ...workspace, Propagation: "rshared" }, { ...socket }]).length, 1)
    assert.strictEqual(of([]).length, 1)
    const networks = { NetworkSettings: { Networks: { bridge: {}, [HostConfig.NetworkMode]: {} } } }
    assert.strictEqual(profileDifferences(profile, { ...made, ...networks }).length, 1)
    assert.strictEqual(profileDifferences(profile, { ...made, AppArmorProfile: "unconfined" }).length, 1)
    assert.deepStrictEqual(profileDifferences(profile, { ...made, AppArmorProfile: "docker-default" }), [])
  })
})
