/** The launchers in bin/ and the links to them, as a person has them: an empty home and a PATH without Choir's Node. */
import { spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { NODE_RELEASES } from "#src/shared/program/version.ts"
import { ROOT } from "../support/installation.ts"
import { NODE_VERSIONS } from "../support/nodeVersions.ts"

let folder = ""
let home = ""
/** What the machine has, and nothing that npm or the tests put in front. */
let system = ""
const links = () => join(home, ".local/bin")

const NEEDED = ["sh", "readlink", "sed"]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "choir link's "))
  home = join(folder, "home")
  system = join(folder, "system")
  for (const each of [home, system]) mkdirSync(each)
  for (const name of NEEDED) symlinkSync(join("/usr/bin", name), join(system, name))
})

afterEach(() => rmSync(folder, { recursive: true }))

interface Options {
  readonly path?: string
  readonly shell?: string
}

const run = (program: string, args: ReadonlyArray<string>, { path = system, shell = "/bin/bash" }: Options = {}) => {
  const { status, stderr, stdout } = spawnSync(program, args, {
    cwd: "/",
    encoding: "utf8",
    env: { HOME: home, PATH: path, SHELL: shell }
  })
  return { status, stderr, stdout }
}

const link = (args: ReadonlyArray<string> = [], options?: Options, root = ROOT) =>
  run(process.execPath, [join(root, "tools/link.ts"), ...args], options)

/** A name typed in a shell. */
const typed = (command: string, path: string) => run(join(system, "sh"), ["-c", command], { path })

/** A checkout of its own, with a space and a quote in its path. */
const checkout = (...parts: ReadonlyArray<string>) => {
  const root = join(folder, "another checkout")
  cpSync(join(ROOT, "bin"), join(root, "bin"), { recursive: true })
  mkdirSync(join(root, "src"))
  cpSync(join(ROOT, "tools"), join(root, "tools"), { recursive: true })
  writeFileSync(join(root, "package.json"), '{"type":"module"}')
  for (const part of parts) symlinkSync(join(ROOT, part), join(root, part))
  return root
}

/** A `node` on the PATH that claims to be of one version. */
const machineNode = (version: string) => {
  const program = `Object.defineProperty(process.versions, "node", { value: ${JSON.stringify(version)} })`
  writeFileSync(join(folder, "version.cjs"), program)
  const node = join(system, "node")
  writeFileSync(node, `#!/bin/sh\nexec "${process.execPath}" --require "${join(folder, "version.cjs")}" "$@"\n`)
  chmodSync(node, 0o755)
}

describe("npm run link", () => {
  it("makes choirctl and choird work by name from any folder, without Node on the PATH", () => {
    assert.deepStrictEqual(link(), {
      status: 0,
      stderr: "",
      stdout: `choirctl and choird are linked in ${links()}
${links()} is not on your PATH. To add it:
  echo 'export PATH="$HOME/.local/bin:$PATH"' >> ~/.bashrc
Then open a new terminal.
`
    })
    const path = `${links()}:${system}`
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string }
    for (const name of ["choirctl", "choird"]) {
      const { status, stderr, stdout } = typed(`${name} --version`, path)
      assert.strictEqual(status, 0)
      // choird keeps standard output for its log.
      assert.strictEqual(stdout + stderr, `${version}\n`)
    }
    assert.strictEqual(typed("choirctl no-such-command", path).status, 2)
    assert.match(link([], { path }).stdout, /Try: choirctl --version/u)
  })

  it("names the line for the person's own shell", () => {
    assert.include(link([], { shell: "/usr/bin/zsh" }).stdout, ">> ~/.zshrc")
    assert.include(link([], { shell: "/usr/bin/fish" }).stdout, 'fish_add_path "$HOME/.local/bin"')
    assert.include(link(["--to", join(folder, "tools")]).stdout, `export PATH="${join(folder, "tools")}:$PATH"`)
  })

  it("leaves another file alone and links nothing, unless it is forced", () => {
    mkdirSync(links(), { recursive: true })
    writeFileSync(join(links(), "choird"), "mine")
    const refused = link()
    assert.strictEqual(refused.status, 1)
    assert.strictEqual(
      refused.stderr,
      `error: ${join(links(), "choird")} is another file\nhint: npm run link -- --force replaces it\n`
    )
    assert.strictEqual(readFileSync(join(links(), "choird"), "utf8"), "mine")
    assert.isUndefined(lstatSync(join(links(), "choirctl"), { throwIfNoEntry: false }))
    assert.strictEqual(link(["--force"]).status, 0)
    assert.strictEqual(readlinkSync(join(links(), "choird")), join(ROOT, "bin/choird"))
  })

  it("never replaces a folder", () => {
    mkdirSync(join(links(), "choirctl"), { recursive: true })
    const { status, stderr } = link(["--force"])
    assert.strictEqual(status, 1)
    assert.match(stderr, /hint: move it away/u)
  })

  it("takes the names of another checkout only by force, and unlink leaves them to their owner", () => {
    const other = checkout("dist", "node_modules")
    assert.strictEqual(link([], {}, other).status, 0)
    assert.match(link().stderr, /choirctl is a link to .*another checkout\/bin\/choirctl/u)
    assert.match(link(["--remove"]).stdout, /left .*choirctl: it does not belong to this checkout/u)
    assert.strictEqual(typed("choirctl --version", `${links()}:${system}`).status, 0)
    assert.strictEqual(link(["--force"]).status, 0)
    const removed = `removed ${join(links(), "choirctl")}\nremoved ${join(links(), "choird")}\n`
    assert.strictEqual(link(["--remove"]).stdout, removed)
    assert.match(link(["--remove"]).stdout, /choirctl does not exist/u)
  })

  it("says which program of the same name comes first on the PATH", () => {
    const first = join(folder, "first")
    mkdirSync(first)
    writeFileSync(join(first, "choirctl"), "#!/bin/sh\n", { mode: 0o755 })
    assert.include(link([], { path: `${first}:${links()}` }).stdout, join(first, "choirctl"))
  })
})

describe("the launcher", () => {
  it("finds its checkout through links of links and a path with spaces", () => {
    const root = checkout("dist", "node_modules")
    symlinkSync(root, join(folder, "link to it"))
    symlinkSync(join(folder, "link to it/bin/choirctl"), join(folder, "one"))
    symlinkSync("one", join(folder, "choose"))
    assert.strictEqual(run(join(folder, "choose"), ["--version"]).status, 0)
    const { status, stdout } = run(join(folder, "choose"), ["chat", "--help"])
    assert.strictEqual(status, 0)
    assert.match(stdout, /choirctl chat/u)
  })

  it("says how to build where there are no bundles", () => {
    const root = checkout("node_modules")
    const { status, stderr } = run(join(root, "bin/choirctl"), [])
    assert.strictEqual(status, 78)
    assert.include(stderr, `error: choirctl is not built in ${root}\nhint: cd '`)
    // The hint survives a shell, in spite of the quote in the path.
    const [, path = ""] = /hint: cd (.*) && npm ci && npm run build\n$/u.exec(stderr) ?? []
    assert.strictEqual(typed(`cd ${path} && pwd`, system).stdout, `${root}\n`)
  })

  it("takes the machine's Node where the checkout has none, if it has the security releases that the programs ask for", () => {
    const root = checkout("dist")
    const none = run(join(root, "bin/choirctl"), ["--version"])
    assert.strictEqual(none.status, 78)
    assert.include(none.stderr, "this machine has no Node, and ")
    machineNode("20.20.2")
    const { status, stderr } = run(join(root, "bin/choirctl"), ["--version"])
    assert.strictEqual(status, 78)
    assert.include(
      stderr,
      `error: choirctl needs ${NODE_RELEASES}: this machine's Node 20.20.2 lacks a security release, and `
    )
    assert.match(stderr, / has none\nhint: cd '.*' && npm ci\n$/u)
    for (const [version, runs] of Object.entries(NODE_VERSIONS)) {
      machineNode(version)
      const ran = run(join(root, "bin/choirctl"), ["--version"])
      assert.strictEqual(ran.status, runs ? 0 : 78, version)
      assert.strictEqual(ran.stderr.startsWith("error: choirctl needs Node "), !runs, version)
    }
  })
})
