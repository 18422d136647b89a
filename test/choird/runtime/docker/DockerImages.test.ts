import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { testEngine } from "../../../support/docker.ts"
import { makeDockerHome, STARTER } from "./dockerImages.ts"
import { BUILD_PROCESSES_MAX } from "#src/choird/runtime/docker/runBuild.ts"
import { IMAGES_KEPT } from "#src/choird/runtime/docker/imageNames.ts"
import { atFull } from "../../../support/size.ts"

const { reason, socket } = testEngine("DockerImages")

/** A base without packages: what these tests look at is what is done with it. */
const SMALL_BASE = `FROM debian:bookworm-slim
RUN cp /bin/true /usr/bin/tini && cp /bin/true /usr/bin/rg && chmod 0111 /usr/bin/tini
COPY --chown=65534:65534 bin/node /opt/choir/bin/node
COPY choir-agent.* /opt/choir/
`

/** Each test has an agent of its own, since tags are the engine's. */
const home = Effect.fnUntraced(function* (name: string, runtime = {}) {
  const made = yield* makeDockerHome(socket, AgentId.make(`img-${name}-${process.pid}`), runtime)
  made.global.commit({ ...STARTER, "Dockerfile.base": SMALL_BASE })
  return made
})

const manifest = (name: string) =>
  JSON.stringify({
    llm: { name, description: "does it", input_schema: { type: "object" } },
    runtime: { exec_path: `/choir/tools/agent/${name}` }
  })

describe.skipIf(reason !== undefined)("DockerImages", { timeout: 300_000 }, () => {
  it.live("builds the starters and bakes the agent's folder in, with the modes of an image (D13)", () =>
    Effect.gen(function* () {
      const { agent, build, global, images, lines, runIn, tags } = yield* home("starter")
      global.commit(STARTER)
      agent.commit({ Dockerfile: "FROM choir-base\nRUN echo made > /made\n", "identity/SOUL.md": "mine" })
      const { built, image_version, path } = yield* build()
      const [tag = ""] = yield* tags
      assert.isTrue(built)
      assert.strictEqual(tag.split(":")[1], image_version)
      assert.isTrue(lines.includes("Step 2/6 : RUN echo made > /made"), lines.join("\n"))
      const script = `
        find /choir -printf '%m %U %p\\n' | sort -k3
        stat -c '%a %u %n' /opt/choir/bin/node /opt/choir/choir-agent* /usr/bin/tini
        cat /choir/SOUL.md /made; echo
        head -c 1 /opt/choir/bin/node || echo unreadable
        python3 -c 'import json; print(json.load(open("/choir/version.json"))["image_version"])'
        /opt/choir/bin/node /opt/choir/choir-agent.js
        for name in git ssh rg; do command -v $name; done`
      const printed = (yield* runIn(tag, ["sh", "-c", script])).split("\n")
      assert.deepStrictEqual(printed, [
        "755 0 /choir",
        "644 0 /choir/SOUL-CORE.md",
        "644 0 /choir/SOUL.md",
        "644 0 /choir/USER.md",
        "755 0 /choir/bin",
        "755 0 /choir/bin/git-cred-helper",
        "755 0 /choir/skills",
        "644 0 /choir/skills/_index.json",
        "644 0 /choir/skills/backup-check.json",
        "644 0 /choir/skills/careful_change.json",
        "644 0 /choir/skills/code-change-with-tests.json",
        "644 0 /choir/skills/daily-brief.json",
        "644 0 /choir/skills/dependency-update.json",
        "644 0 /choir/skills/inbox-triage.json",
        "644 0 /choir/skills/meeting-notes.json",
        "644 0 /choir/skills/release-notes.json",
        "644 0 /choir/skills/research-with-sources.json",
        "644 0 /choir/skills/spend-report.json",
        "644 0 /choir/skills/summarize.json",
        "644 0 /choir/skills/todo-flagger.json",
        "644 0 /choir/skills/weekly-review.json",
        "755 0 /choir/tools",
        "755 0 /choir/tools/agent",
        "755 0 /choir/tools/global",
        "755 0 /choir/tools/global/clock.now",
        "644 0 /choir/tools/global/clock.now.json",
        "644 0 /choir/version.json",
        "111 65534 /opt/choir/bin/node",
        "644 0 /opt/choir/choir-agent.cache",
        "644 0 /opt/choir/choir-agent.code.js",
        "644 0 /opt/choir/choir-agent.js",
        "644 0 /opt/choir/choir-agent.o200k",
        "111 65534 /usr/bin/tini",
        "minemade",
        "",
        "head: cannot open '/opt/choir/bin/node' for reading: Permission denied",
        "unreadable",
        image_version,
        "an agent",
        "/usr/bin/git",
        "/usr/bin/ssh",
        "/usr/bin/rg"
      ])
      assert.isTrue(yield* images.has(AgentId.make(`img-starter-${process.pid}`), image_version))
      lines.length = 0
      const again = yield* build()
      assert.deepStrictEqual([again.built, again.path], [false, path])
      assert.deepStrictEqual(lines, ["fetch global", "fetch agent", "check"])
    })
  )

  atFull(it.live)("builds again what the engine lost, and an agent whose base has changed", () =>
    Effect.gen(function* () {
      const { build, engine, global, images, tags } = yield* home("again")
      const first = yield* build()
      const [tag = ""] = yield* tags
      yield* engine.use("the image", (docker) => docker.getImage(tag).remove())
      assert.isFalse(yield* images.has(AgentId.make(`img-again-${process.pid}`), first.image_version))
      assert.isTrue((yield* build()).built)
      assert.deepStrictEqual(yield* tags, [tag])
      global.commit({ ...STARTER, "Dockerfile.base": `${SMALL_BASE}LABEL x=y\n` })
      assert.isTrue((yield* build()).built)
      assert.strictEqual((yield* tags).length, 2)
    })
  )

  it.live("compiles tools by the Dockerfile, and misses an executable that it does not make", () =>
    Effect.gen(function* () {
      const { agent, build, runIn, tags } = yield* home("compiled")
      const files = { "tools/hello.json": manifest("hello"), "tools/hello/hello.in": "#!/bin/sh\necho compiled\n" }
      agent.commit({
        ...files,
        Dockerfile: [
          "FROM choir-base AS build",
          "COPY tools/hello/ /build/",
          "RUN install -m 0755 /build/hello.in /build/hello",
          "FROM choir-base",
          "COPY --from=build /build/hello /choir/tools/agent/hello",
          ""
        ].join("\n")
      })
      yield* build()
      const [tag = ""] = yield* tags
      const script = "ls -1 /choir/tools/agent; /choir/tools/agent/hello"
      assert.strictEqual(yield* runIn(tag, ["sh", "-c", script]), "hello\nhello.json\ncompiled")
      agent.commit({ ...files, Dockerfile: "FROM choir-base\n" })
      const error = yield* Effect.flip(build())
      assert.match(error.message, /leave no executable at \/choir\/tools\/agent\/hello/u)
      assert.deepStrictEqual(yield* tags, [tag])
    })
  )

  atFull(it.live)("tells the step that failed and what it printed, and leaves the names as they were", () =>
    Effect.gen(function* () {
      const { agent, build, made, tags } = yield* home("failing")
      const id = AgentId.make(`img-failing-${process.pid}`)
      const before = yield* build()
      const names = yield* tags
      agent.commit({ Dockerfile: "FROM choir-base\nRUN echo first\nRUN echo oh && echo no >&2 && exit 7\n" })
      const error = yield* Effect.flip(build())
      assert(error._tag === "ImageBuildFailed")
      assert.strictEqual(error.step, "RUN echo oh && echo no >&2 && exit 7")
      assert.deepStrictEqual(error.output?.toSorted(), ["no", "oh"])
      assert.match(error.problem, /returned a non-zero code: 7/u)
      assert.strictEqual(error.fix, "Correct the Dockerfile, commit, and build again")
      assert.deepStrictEqual(yield* tags, names)
      assert.strictEqual((yield* made.current(id)).image_version, before.image_version)
    })
  )

  it.live("gives an agent's build no network unless the configuration opens it (D24)", () =>
    Effect.gen(function* () {
      const look = 'FROM choir-base\nRUN test "$(ls /sys/class/net)" = lo || { echo network is there; exit 3; }\n'
      const closed = yield* home("closed")
      closed.agent.commit({ Dockerfile: look })
      yield* closed.build()
      closed.agent.commit({ Dockerfile: "FROM choir-base\nRUN echo network unreachable; exit 1\n" })
      const error = yield* Effect.flip(closed.build())
      assert.match(error._tag === "ImageBuildFailed" ? error.fix : "", /set runtime.build_network to "open"/u)
      const open = yield* home("open", { build_network: "open" })
      // Another instruction, or the engine would take the result that it has.
      open.agent.commit({ Dockerfile: look.replace("network is there", "network is there now") })
      assert.match((yield* Effect.flip(open.build())).message, /network is there now/u)
    })
  )

  it.live("holds an agent's build within its memory, processors and processes (D24)", () =>
    Effect.gen(function* () {
      const { agent, build } = yield* home("limits", { memory_mb: 256, cpus: 1.5 })
      const look = "cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes memory.max; cat cpu/cpu.cfs_quota_us cpu.max"
      // The same kind of limit, lowered: root of a mapped namespace is bound by it.
      const bomb = "ulimit -u 50; i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i+1)); done"
      const run = [
        "/bin/bash",
        "-c",
        `ulimit -u; ulimit -c; { ${look}; } 2>/dev/null; ( ${bomb} ) 2>&1 | grep -m1 -c Resource; exit 9`
      ]
      agent.commit({ Dockerfile: `FROM choir-base\nRUN ${JSON.stringify(run)}\n` })
      const error = yield* Effect.flip(build())
      assert(error._tag === "ImageBuildFailed")
      const printed = error.output ?? []
      assert.deepStrictEqual(printed.slice(0, 3), [String(BUILD_PROCESSES_MAX), "0", String(256 << 20)], printed.join())
      assert.match(printed[3] ?? "", /^150000/u)
      assert.strictEqual(printed[4], "1")
    })
  )

  it.live("leaves nothing under the final name when a build is interrupted, and none of it running", () =>
    Effect.gen(function* () {
      const { agent, build, engine, tags } = yield* home("interrupted")
      agent.commit({ Dockerfile: "FROM choir-base\nRUN echo begun && sleep 600\n" })
      const begun = yield* Deferred.make<void>()
      const progress = (line: string) => (line === "begun" ? Deferred.succeed(begun, undefined) : Effect.void)
      const fiber = yield* Effect.forkChild(build({ progress: (line) => Effect.asVoid(progress(line)) }))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* tags, [])
      const sleeping = engine
        .use("the containers", (docker) => docker.listContainers())
        .pipe(Effect.map((rows) => rows.filter(({ Command }) => Command.includes("begun && sleep 600"))))
      const gone = Effect.repeat(sleeping, { until: (rows) => rows.length === 0 })
      yield* Effect.timeout(gone, "2 minutes")
    })
  )

  it.live("refuses an image that would change the agent's own process, whatever way it came to it (D24)", () =>
    Effect.gen(function* () {
      const { agent, build, global, tags } = yield* home("refused")
      agent.commit({ Dockerfile: "FROM choir-base\nENV NODE_OPTIONS=--require=/x.js\n" })
      assert.match((yield* Effect.flip(build())).message, /it sets NODE_OPTIONS/u)
      agent.commit({ Dockerfile: "FROM choir-base\nRUN chmod -R a+rX /usr/bin\n" })
      assert.match((yield* Effect.flip(build())).message, /the Dockerfile changed \/usr\/bin\/tini/u)
      agent.commit({ Dockerfile: "FROM choir-base\nRUN echo /x.so > /etc/ld.so.preload\n" })
      assert.match((yield* Effect.flip(build())).message, /ld\.so\.preload/u)
      agent.commit({ Dockerfile: "FROM choir-base\n" })
      global.commit({ ...STARTER, "Dockerfile.base": `${SMALL_BASE}RUN chmod 0755 /opt/choir/bin/node\n` })
      assert.match((yield* Effect.flip(build())).message, /bin\/node has mode 0755, and agents need it with mode 0111/u)
      global.commit({ ...STARTER, "Dockerfile.base": "FROM debian:bookworm-slim\n" })
      assert.match((yield* Effect.flip(build())).message, /bin\/node is missing/u)
      global.commit({ "identity/USER.md": "", "identity/SOUL.md": "", "identity/SOUL-CORE.md": "" })
      assert.match((yield* Effect.flip(build())).message, /has no Dockerfile.base/u)
      assert.deepStrictEqual(yield* tags, [])
    })
  )

  atFull(it.live)("takes no image of another installation on the same engine for its own, whose tag is the same", () =>
    Effect.gen(function* () {
      const mine = yield* home("shared")
      const other = yield* home("shared")
      const { image_version } = yield* mine.build()
      assert.isTrue((yield* other.build()).built)
      assert.deepStrictEqual((yield* other.build()).image_version, image_version)
      const agent_id = AgentId.make(`img-shared-${process.pid}`)
      const has = ({ images }: typeof mine) => images.has(agent_id, image_version)
      assert.deepStrictEqual([yield* has(mine), yield* has(other)], [false, true])
      assert.isTrue((yield* mine.build()).built)
      assert.deepStrictEqual([yield* has(mine), yield* has(other)], [true, false])
    })
  )

  atFull(it.live)("leaves no image without a name behind when one is built again", () =>
    Effect.gen(function* () {
      const { agent, build, nameless } = yield* home("anew")
      agent.commit({ Dockerfile: "FROM choir-base\nRUN date +%N > /made\n" })
      yield* build()
      yield* build({ force: true })
      assert.deepStrictEqual(yield* nameless, [])
    })
  )

  atFull(it.live)("keeps the newest images and those in use, and no other", () =>
    Effect.gen(function* () {
      const { agent, build, tags } = yield* home("kept")
      const versions: Array<string> = []
      const first = yield* build()
      for (let made = 0; made < IMAGES_KEPT; made += 1) {
        agent.commit({ Dockerfile: "FROM choir-base\n", "README.md": String(made) })
        versions.push((yield* build({ in_use: [first.image_version] })).image_version)
      }
      const left = Effect.map(tags, (names) => new Set(names.map((name) => name.split(":")[1])))
      assert.deepStrictEqual(yield* left, new Set([first.image_version, ...versions]))
      agent.commit({ Dockerfile: "FROM choir-base\n", "README.md": "last" })
      const { image_version } = yield* build()
      assert.deepStrictEqual(yield* left, new Set([image_version, ...versions.slice(1)]))
    })
  )
})
